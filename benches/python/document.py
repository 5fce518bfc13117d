"""Puts what the benches wrote into docs/benchmarks.md: `python benches/python/document.py [--results build/bench]`.

The README gets six figures of the page. Tables of benches that were not run stay unchanged. A row
that misses its target needs an
explanation on the page; test_report.py names the rows that have none.
"""

from __future__ import annotations

import argparse
import json
import shutil
import sys
from pathlib import Path

import report

ROOT = Path(__file__).resolve().parents[2]
README = ROOT / "README.md"
PAGE = ROOT / "docs" / "benchmarks.md"
PICTURES = ROOT / "docs" / "bench"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--results", type=Path, default=ROOT / "build" / "bench")
    folder: Path = parser.parse_args().results
    if (file := folder / "results.json").is_file():
        results = json.loads(file.read_text())
        put(PAGE, "targets", report.summary(results))
        put(PAGE, "bench", report.markdown(results))
    if (file := folder / "native.json").is_file():
        put(PAGE, "native", report.markdown(json.loads(file.read_text())))
    if (file := folder / "systems.md").is_file():
        put(PAGE, "systems", file.read_text())
        PICTURES.mkdir(exist_ok=True)
        for picture in sorted(folder.glob("*.svg")):
            shutil.copy(picture, PICTURES)
    if (file := folder / "pipeline.md").is_file():
        put(PAGE, "pipeline", file.read_text())
    put(README, "figures", report.highlights(PAGE.read_text()))
    return 0


def put(document: Path, name: str, table: str) -> None:
    document.write_text(report.splice(document.read_text(), table, name))
    print(f"{document.relative_to(ROOT)}: {name}")


if __name__ == "__main__":
    sys.exit(main())
