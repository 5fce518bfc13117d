"""The package's metadata, and its errors about optional packages that are not installed."""

import subprocess
import sys
from importlib.metadata import metadata

import pytest

pytestmark = pytest.mark.zeroxide_only

# A call, the package that it lacks, and the extra that installs it.
USES = {
    "import zeroxide.green": ("gevent", "gevent"),
    "import zeroxide.green.eventloop.zmqstream": ("gevent", "gevent"),
    "import zeroxide.eventloop.zmqstream": ("tornado", "tornado"),
    "import zeroxide.eventloop.future": ("tornado", "tornado"),
    "import zeroxide.pipeline; next(zeroxide.pipeline.Client('tcp://127.0.0.1:1').fetch(0, 1))": (
        "pyarrow",
        "arrow",
    ),
    "import zeroxide as zmq; zmq.Context().socket(zmq.PUSH).send_typed(1)": ("msgspec", "typed"),
    "import zeroxide; zeroxide.metrics.instrument()": ("opentelemetry", "opentelemetry"),
    "from zeroxide import discovery; discovery.follow(None, 'srv://x')": ("dns", "dns"),
    "import zeroxide.spark; zeroxide.spark.session()": ("pyspark", "spark"),
}


@pytest.mark.parametrize("code", USES)
def test_a_missing_package_is_named_with_the_extra_that_installs_it(code):
    package, extra = USES[code]
    hidden = f"import sys; sys.modules['{package}'] = None; {code}"
    done = subprocess.run(
        [sys.executable, "-c", hidden], capture_output=True, text=True, check=False
    )
    last = [line for line in done.stderr.splitlines() if "Error: " in line][-1]
    assert f"needs {package}: pip install 'zeroxide[{extra}]'" in last
    assert extra in metadata("zeroxide").get_all("Provides-Extra")


def test_the_metadata_says_where_the_project_lives_and_what_it_runs_on():
    found = metadata("zeroxide")
    urls = dict(url.split(", ", 1) for url in found.get_all("Project-URL"))
    assert {"Documentation", "Source", "Issues", "Changelog", "Security"} <= urls.keys()
    assert found["Author"]
    classifiers = found.get_all("Classifier")
    for wanted in (
        *("Typing :: Typed", "Framework :: AsyncIO", "Operating System :: POSIX :: Linux"),
        *(f"Programming Language :: Python :: 3.{minor}" for minor in range(11, 15)),
    ):
        assert wanted in classifiers
