"""Several interpreters in one process."""

import pytest
from support import finish_script, start_script

pytestmark = pytest.mark.zeroxide_only

# An interpreter that shares the GIL and loads any extension module, as those of mod_wsgi do.
OTHER = """
import sys

other = '''
import sys
try:
    import zeroxide
except ImportError as error:
    sys.stderr.write(f"refused: {error}")
'''
if sys.version_info >= (3, 13):
    import _interpreters
    number = _interpreters.create("legacy")
    _interpreters.exec(number, other)
    _interpreters.destroy(number)
else:
    import _xxsubinterpreters
    options = {} if sys.version_info < (3, 12) else {"isolated": False}
    number = _xxsubinterpreters.create(**options)
    _xxsubinterpreters.run_string(number, other)
    _xxsubinterpreters.destroy(number)
with zmq.Context() as context, context.socket(zmq.PULL) as pull:
    try:
        pull.recv(zmq.NOBLOCK)
    except zmq.Again as error:
        print(str(error))
"""


def test_another_interpreter_is_refused(zmq):
    """The classes of its errors would replace those of the first one."""
    out, err = finish_script(start_script(zmq.__name__, OTHER))
    assert out == "Resource temporarily unavailable: no message to receive now\n"
    assert err.startswith("refused: zeroxide was imported in another interpreter")
