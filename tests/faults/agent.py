"""The process under test. It runs the Python code that it reads from stdin, in which the binding is `zmq`.

Each line of stdin is the `repr` of a text of code. Each line of stdout is the `repr` of an outcome: ("value", V), where V is
the value of the last expression if it is made of literals, or ("error", TYPE, ERRNO, TEXT).
"""

import ast
import importlib
import os
import signal
import sys
import threading
import time


def main(module: str) -> None:
    # stdout belongs to the outcomes, whatever the code prints.
    outcomes = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    space = {
        "zmq": importlib.import_module(module),
        "os": os,
        "signal": signal,
        "sys": sys,
        "threading": threading,
        "time": time,
    }
    # Shells start background jobs with SIGINT ignored.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    for line in sys.stdin:
        outcomes.write(f"{run(ast.literal_eval(line), space)!r}\n")
        outcomes.flush()


def run(code: str, space: dict[str, object]) -> tuple[object, ...]:
    try:
        tree = ast.parse(code)
        last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
        exec(compile(tree, "<row>", "exec"), space)
        if last is None:
            return "value", None
        value = eval(compile(ast.Expression(last.value), "<row>", "eval"), space)
    except BaseException as error:
        number = getattr(error, "errno", None)
        return "error", type(error).__name__, number and int(number), str(error)
    return "value", value if literal(value) else None


def literal(value: object) -> bool:
    try:
        ast.literal_eval(repr(value))
    except (ValueError, SyntaxError):
        return False
    return True


if __name__ == "__main__":
    main(sys.argv[1])
