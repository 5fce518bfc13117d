"""What is written about running a collector says only what there is: units, images, manifests, pages."""

import json
import re
import shlex
import shutil
import subprocess
import sys

import pytest
from programs import ROOT

pytestmark = pytest.mark.zeroxide_only

DEPLOY = ROOT / "examples" / "deploy"
UNIT = DEPLOY / "zeroxide-collector.service"
PAGES = [*(ROOT / "docs" / "pipeline").glob("*.md"), *(ROOT / "docs" / "spark").glob("*.md")]


@pytest.fixture(scope="module")
def options():
    """The flags of ``zeroxide collector``."""
    said = subprocess.check_output(
        [sys.executable, "-m", "zeroxide", "collector", "--help"], text=True
    )
    return set(re.findall(r"(?<![\w-])--[a-z][a-z-]+", said))


def test_variables(options):
    known = {"ZEROXIDE_COLLECTOR_" + flag[2:].replace("-", "_").upper() for flag in options}
    # Not a flag, because others can see those.
    known.add("ZEROXIDE_COLLECTOR_SECRET_KEY")
    for path in (*DEPLOY.iterdir(), *PAGES):
        named = set(re.findall(r"ZEROXIDE_COLLECTOR_[A-Z_]*[A-Z]", path.read_text()))
        assert named <= known, path


def test_commands(options):
    unit = re.search(r"^ExecStart=(.+)$", UNIT.read_text(), re.MULTILINE)
    image = re.search(r"^CMD (\[.+\])$", (DEPLOY / "Dockerfile").read_text(), re.MULTILINE)
    manifest = re.search(r"args: \[(.+)\]", (DEPLOY / "collector.yaml").read_text())
    for words in (
        shlex.split(unit[1])[1:],
        json.loads(image[1]),
        [word.strip(' "') for word in manifest[1].split(",")],
    ):
        assert words[0] == "collector"
        flags = {word for word in words if word.startswith("--")}
        assert {"--bind", "--dir"} < flags <= options


def test_every_option_of_the_collector_is_on_its_page(options):
    page = (ROOT / "docs" / "pipeline" / "collector.md").read_text()
    assert [flag for flag in sorted(options) if flag != "--help" and flag not in page] == []


def test_the_unit_is_one(tmp_path):
    program = shutil.which("systemd-analyze")
    if program is None:
        pytest.skip("needs systemd-analyze")
    # With what its comments offer, and a program that is there.
    text = re.sub(r"^#(?=LoadCredential=|Environment=)", "", UNIT.read_text(), flags=re.MULTILINE)
    copy = tmp_path / UNIT.name
    copy.write_text(text.replace("/opt/zeroxide/bin/zeroxide", "/bin/true"))
    done = subprocess.run(
        [program, "verify", "--man=no", copy], capture_output=True, text=True, timeout=60
    )
    assert (done.returncode, done.stderr) == (0, "")
