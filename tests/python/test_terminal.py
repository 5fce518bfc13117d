"""The commands on the pages of the documentation print what is shown there, and the pictures show the same."""

import importlib.util

import pytest
from programs import ROOT

pytestmark = pytest.mark.zeroxide_only

spec = importlib.util.spec_from_file_location("terminal", ROOT / "tools" / "terminal.py")
terminal = importlib.util.module_from_spec(spec)
spec.loader.exec_module(terminal)


@pytest.mark.parametrize("page", terminal.pages(), ids=lambda page: page.stem)
def test_commands_print_what_is_shown(page):
    pytest.importorskip("pyarrow")
    text = page.read_text()
    assert terminal.played(text) == text


def test_pictures_are_what_the_tool_draws():
    """`python tools/terminal.py --write` draws them."""
    drawn = {}
    for page in terminal.pages():
        drawn |= {f"{name}.svg": svg for name, svg in terminal.pictures(page.read_text()).items()}
    assert drawn == {file.name: file.read_text() for file in terminal.FOLDER.iterdir()}
