"""The text of a row, and the rows that the pages show."""

from pathlib import Path

import report
from cases import CASES, Share
from report import Row

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "benchmarks.md").read_text()


def row(ours: float, **options: object) -> Row:
    return Row("group", "name", "msgs/s", {"pyzmq": 100.0, "zeroxide": ours}, **options)  # type: ignore[arg-type]


def test_more_is_better_for_rates():
    assert not row(300, targets={"pyzmq": 2.5}).missed
    assert row(200, targets={"pyzmq": 2.5}).missed == ["pyzmq"]
    assert row(200, targets={"pyzmq": 2.5}).no_less_than("pyzmq")


def test_less_is_better_for_times():
    assert not row(70, targets={"pyzmq": 0.75}, higher_is_better=False).missed
    assert row(80, targets={"pyzmq": 0.75}, higher_is_better=False).missed == ["pyzmq"]
    assert not row(110, higher_is_better=False).no_less_than("pyzmq")


def test_without_a_target_no_worse_is_enough():
    assert not row(96).missed
    assert row(94).missed == ["pyzmq"]


def test_a_bound_is_for_ours_alone():
    assert not row(1.1, bound=1.2, higher_is_better=False).missed
    assert row(1.3, bound=1.2, higher_is_better=False).missed == ["bound"]


def test_a_rival_that_cannot_is_a_gap_and_not_a_failure():
    gap = Row(
        "group",
        "name",
        "us",
        {"pyzmq": 5.0, "pyomq": None, "zeroxide": 4.0},
        higher_is_better=False,
    )
    assert gap.missed == []
    assert report.over(gap, "pyomq") == "-"


def test_a_share_is_made_of_two_rows():
    part = Row("a", "flow", "msgs/s", {"pyzmq": 1e6, "zeroxide": 3e6})
    whole = Row("b", "call", "ns", {"pyzmq": 500.0, "zeroxide": 250.0})
    share = report.share_of(Share("c", "of it", "a: flow", "b: call", 0.7), [part, whole])
    assert share is not None
    assert share.medians == {"pyzmq": 0.5, "zeroxide": 0.75}
    assert not share.missed


def test_the_table_has_the_target_beside_what_was_measured():
    results = {
        "machine": {"date": "today", "Linux": "6"},
        "settings": {"repetitions": 5, "seconds": 1.0},
        "labels": ["pyzmq", "zeroxide"],
        "rows": report.as_json(
            [row(300, targets={"pyzmq": 2.5}), row(200, targets={"pyzmq": 2.5})]
        ),
    }
    table = report.markdown(results)
    assert "| 3.00 (≥ 2.5 ✓) |" in table
    assert "| 2.00 (≥ 2.5 ✗) |" in table
    assert report.splice("x <!-- bench:begin --><!-- bench:end --> y", table).count(table) == 1


def test_names_of_cases_are_unique():
    names = [(case.group, case.name) for case in CASES]
    assert len(names) == len(set(names))


def test_the_summary_has_what_has_a_target_of_its_own():
    rows = [
        row(300, targets={"pyzmq": 2.5}),
        row(99),
        Row("g", "bound", "KiB", {"pyzmq": 9.0, "zeroxide": 5.0}, bound=4, higher_is_better=False),
    ]
    text = report.summary(
        {
            "machine": {"date": "today", "Linux": "6"},
            "labels": ["pyzmq", "zeroxide"],
            "rows": report.as_json(rows),
        }
    )
    assert text.splitlines()[0] == "today, Linux 6"
    assert text.splitlines()[4:] == [
        "| group: name, msgs/s | 100 | 300 | 3.00 | ≥ 2.5 ✓ |",
        "| g: bound, KiB | 9 | 5 |  | ≤ 4 ✗ |",
    ]


def test_every_missed_target_is_explained():
    section = PAGE.split("## Missed targets")[1].split("\n## ")[0]
    lines = [line for line in section.splitlines() if line.startswith("| ")][2:]
    explained = {name for line in lines for name in line[2:].split(" | ")[0].split("<br>")}
    missed = set(report.missed_rows(PAGE.replace(section, "")))
    assert missed, "are there no tables any more?"
    assert missed - explained == set(), "rows without an explanation"
    assert explained - missed == set(), "explanations of rows that meet their target"


def test_the_readme_shows_figures_of_the_page():
    readme = (ROOT / "README.md").read_text()
    assert report.part(readme, "figures").strip() == report.highlights(PAGE).strip()
