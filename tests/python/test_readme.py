"""The README, which is PyPI's page as well: its programs run, and its links work from any page."""

import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

pytestmark = pytest.mark.zeroxide_only

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text()
PATIENCE = 60

PROGRAMS = re.findall(r"```python\n(.*?)```", README, re.DOTALL)


def setting(name: str) -> str:
    """Returns an address from mkdocs.yml, which is where these addresses are set."""
    found = re.search(rf"^{name}: (\S+)$", (ROOT / "mkdocs.yml").read_text(), re.MULTILINE)
    assert found is not None, name
    return found[1]


SITE, REPOSITORY = setting("site_url"), setting("repo_url")
RAW = REPOSITORY.replace("github.com", "raw.githubusercontent.com")


@pytest.mark.parametrize("program", PROGRAMS, ids=["sockets", "asyncio", "log"])
def test_program(program: str, tmp_path: Path) -> None:
    """It prints the text of the comment after each call of print."""
    expected = re.findall(r"print\(.*\)  # (.*)", program)
    assert expected
    ran = subprocess.run(
        [sys.executable, "-c", program],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=PATIENCE,
    )
    assert ran.stdout.splitlines() == expected, ran.stderr


def test_links_work_on_pypi() -> None:
    links = re.findall(r"\]\(([^)]*)\)", README)
    assert len(links) > 10
    for link in links:
        if link.startswith(SITE):
            page = link.removeprefix(SITE).partition("#")[0]
            target = ROOT / "docs" / page.replace(".html", ".md")
        else:
            branch = "/main/" if link.startswith(RAW) else "/blob/main/"
            root = RAW if link.startswith(RAW) else REPOSITORY
            assert link.startswith(root + branch), link
            target = ROOT / link.removeprefix(root + branch)
        assert target.is_file(), link


def test_everything_names_the_same_addresses() -> None:
    cargo = tomllib.loads((ROOT / "Cargo.toml").read_text())["workspace"]["package"]
    assert cargo["repository"] == REPOSITORY
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    for name, address in project.get("urls", {}).items():
        assert address.startswith((SITE, REPOSITORY)), name
    listed = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True)
    for path in listed.stdout.splitlines():
        if path.endswith((".md", ".toml", ".yml", ".service", ".py", ".rs", ".html")):
            text = (ROOT / path).read_text()
            for address in re.findall(
                r"https://[\w.]*github(?:\.com|\.io)/zeroxide[^\s\"')>]*", text
            ):
                assert address.startswith((SITE, REPOSITORY)), f"{path}: {address}"
                page = address.removeprefix(SITE).partition("#")[0]
                if address.startswith(SITE) and page.endswith(".html"):
                    assert (ROOT / "docs" / page.replace(".html", ".md")).is_file(), path


def test_it_can_be_read_in_a_minute_or_two() -> None:
    assert len(README.split()) < 800
    assert README.count("![") <= 2
    code = "".join(re.findall(r"^```\w+\n(.*?)^```", README, re.DOTALL | re.MULTILINE))
    assert max(map(len, code.splitlines())) < 80, "PyPI's column is narrow"


def test_make_has_the_commands() -> None:
    makefile = (ROOT / "Makefile").read_text()
    for target in re.findall(r"(?:`|^)make ([\w-]+)", README, re.MULTILINE):
        assert re.search(rf"^{target}:", makefile, re.MULTILINE), target
