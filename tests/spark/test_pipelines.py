"""The programs of examples/pipelines, with less data."""

import importlib.util
from pathlib import Path

import pytest

# Complete programs, which take longer on a busy machine.
pytestmark = pytest.mark.timeout(300)

PIPELINES = Path(__file__).resolve().parents[2] / "examples" / "pipelines"


@pytest.fixture
def pipeline():
    """Loads an example by its name."""

    def load(name):
        spec = importlib.util.spec_from_file_location(name, PIPELINES / f"{name}.py")
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        return module

    return load


def test_all_of_them_are_in_the_list():
    listed = (PIPELINES / "README.md").read_text()
    programs = sorted(PIPELINES.glob("*.py"))
    assert [program.name for program in programs if program.name not in listed] == []
    assert len(programs) == 4


def test_ticks(spark, pipeline, tmp_path):
    ticks = pipeline("ticks")
    bars, sent = ticks.run(spark, tmp_path, minutes=2)
    rows = bars.collect()
    expected = {}
    for second, _, symbol, price, size in ticks.market(120):
        start = ticks.OPENING.timestamp() + second // 10 * 10
        expected.setdefault((symbol, start), []).append((price, size))
    assert sum(map(len, expected.values())) == sent
    assert len(rows) == len(expected) == 4 * 12
    for row in rows:
        prices, sizes = zip(*expected[row.symbol, row.start.timestamp()], strict=True)
        assert (row.open, row.close) == (prices[0], prices[-1])
        assert (row.low, row.high) == (min(prices), max(prices))
        assert row.volume == sum(sizes)
        assert row.vwap == pytest.approx(
            sum(p * s for p, s in zip(prices, sizes, strict=True)) / sum(sizes)
        )


def test_telemetry(spark, pipeline, tmp_path):
    rows = pipeline("telemetry").run(spark, tmp_path, readings=200, cuts=2).collect()
    assert [row.device for row in rows] == [f"device-{number}" for number in range(8)]
    assert {(row.rows, row.different, row.expected) for row in rows} == {(200, 200, 200)}


def test_logs(spark, pipeline, tmp_path):
    found, archive = pipeline("logs").run(spark, tmp_path, lines=500)
    assert found == [500, 500]
    assert archive.count() == archive.distinct().count() == 1000
    assert archive.where("level = 'ERROR'").count() == 20


def test_scoring(spark, pipeline):
    scoring = pipeline("scoring")
    with scoring.services(2) as endpoints:
        rows = scoring.run(spark, endpoints, 20_000).collect()
    assert [row.id for row in rows] == list(range(20_000))
    assert rows[0].score == pytest.approx(1 / (1 + 2.718281828 ** (0.03 * 18)))
