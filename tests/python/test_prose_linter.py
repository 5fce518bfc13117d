"""The phrase linter finds what its rules describe, in prose only."""

import importlib.util
import sys
from pathlib import Path

import pytest

spec = importlib.util.spec_from_file_location(
    "prose", Path(__file__).parents[2] / "tools" / "prose.py"
)
assert spec is not None and spec.loader is not None
prose = importlib.util.module_from_spec(spec)
sys.modules["prose"] = prose  # dataclasses look their module up
spec.loader.exec_module(prose)

RULES = prose.Rules.read()
CONTRIBUTING = (prose.ROOT / "CONTRIBUTING.md").read_text()


def phrases(name: str, text: str) -> list[tuple[int, str]]:
    return [(found.line, found.phrase) for found in RULES.check(name, text)]


@pytest.mark.parametrize("rule", RULES.phrases, ids=lambda rule: rule.before)
def test_every_rule_finds_its_bad_example_and_accepts_the_good_one(rule: prose.Rule) -> None:
    assert rule in [found.rule for found in RULES.check("page.md", rule.before)]
    assert RULES.check("page.md", rule.after) == []
    assert f"| S{rule.style} |" in CONTRIBUTING


def test_pages_are_checked_outside_code() -> None:
    page = (
        "Wait for\never.\n\n```python\nnobody = 1  # nobody calls this\n```\n\nThe name `nobody`.\n"
    )
    assert phrases("page.md", page) == [(1, "for ever"), (5, "nobody")]


def test_text_that_quotes_a_phrase_is_left_out() -> None:
    page = "<!-- prose off -->\nIt waits for ever.\n<!-- prose on -->\nIt waits for ever.\n"
    assert phrases("page.md", page) == [(4, "for ever")]


def test_python_is_checked_in_comments_strings_and_names_of_tests() -> None:
    program = (
        '"""Nobody reads this."""\n'
        "nobody = b'nobody'\n"
        "raise ValueError(f'{nobody} for good')  # for ever\n"
        "def test_nobody_waits(): ...\n"
    )
    assert phrases("a.py", program) == [
        (1, "Nobody"),
        (3, "for good"),
        (3, "for ever"),
        (4, "nobody"),
    ]


def test_rust_is_checked_in_comments_strings_and_names_of_tests() -> None:
    program = (
        '/// Nobody waits, for\n/// ever.\nlet nobody = b"nobody"; // fine\nErr("for good")\n'
        "#[test]\nfn nobody_waits() {}\nfn nobody_helps() {}\n"
    )
    assert phrases("a.rs", program) == [
        (1, "Nobody"),
        (1, "for ever"),
        (4, "for good"),
        (6, "nobody"),
    ]


def test_a_phrase_in_the_tree_fails_the_run(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    (tmp_path / "page.md").write_text("It waits for ever.\n")
    monkeypatch.setattr(prose, "ROOT", tmp_path)
    monkeypatch.setattr(prose, "tracked", lambda paths: [tmp_path / "page.md"])
    assert prose.main([]) == 1
    assert "page.md:1: “for ever” (S2): " in capsys.readouterr().out
    (tmp_path / "page.md").write_text("It waits forever.\n")
    assert prose.main([]) == 0
