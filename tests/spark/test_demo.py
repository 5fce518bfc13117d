"""The demo, from end to end and without its pace; and that its check can fail."""

import copy
import io
import os
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def demo():
    """The demo's modules, which are no installed package."""
    sys.path.insert(0, str(ROOT))
    try:
        from examples.demo import __main__, flights, picture, view

        yield {"main": __main__, "flights": flights, "picture": picture, "view": view}
    finally:
        sys.path.remove(str(ROOT))


@pytest.fixture(scope="module")
def expected(demo):
    return demo["flights"].expected()


def test_the_demo_is_exact(java, tmp_path):
    run = subprocess.run(
        [sys.executable, "-m", "examples.demo", "--seconds", "0", "--out", tmp_path],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=115,
        env=os.environ | {"PYSPARK_PYTHON": sys.executable},
    )
    assert run.returncode == 0, run.stdout[-3000:] + run.stderr[-3000:]
    assert run.stdout.splitlines()[-1] == "exact: 336776 flights in, 336776 flights out"
    assert "dropped   0 messages" in run.stdout
    ElementTree.parse(tmp_path / "flights.svg")


def test_the_data_is_what_it_is_known_to_be(demo, expected):
    flights = demo["flights"]
    total = expected[(flights.TOTAL,)]
    assert (total.flights, total.flights - total.departed) == (336_776, 8_255)
    by_airport = {
        airport: sum(d.flights for key, d in expected.items() if key[2:] == (airport,))
        for airport in flights.AIRPORTS
    }
    assert by_airport == {"EWR": 120_835, "JFK": 111_279, "LGA": 104_662}
    assert f"{expected[('carrier', 'UA', 'EWR')].mean:.2f}" == "12.52"


def test_the_check_notices(demo, expected, capsys):
    main, flights = demo["main"], demo["flights"]
    total = expected[(flights.TOTAL,)].flights
    assert main.verdict(total, expected, expected) == 0
    assert main.verdict(total - 1, expected, expected) == 1
    wrong = copy.deepcopy(expected)
    wrong[("hour", "17")].minutes += 1
    capsys.readouterr()
    assert main.verdict(total, wrong, expected) == 1
    assert "hour 17" in capsys.readouterr().err
    del wrong[("hour", "17")]
    assert main.verdict(total, wrong, expected) == 1


def test_groups_without_departures_are_shown(demo, tmp_path):
    flights = demo["flights"]
    delays = flights.Delays
    answer = {
        ("carrier", "UA", "EWR"): delays(3, 2, 1, 31),
        ("carrier", "XX", "JFK"): delays(1, 0, 0, 0),
        ("hour", "1"): delays(1, 0, 0, 0),
        ("hour", "17"): delays(3, 2, 1, 31),
        ("total",): delays(4, 2, 1, 31),
    }
    text = demo["view"].tables(answer, {"UA": "United & Co"})
    assert "4 flights; 2 of them have no departure time" in text
    demo["picture"].save(answer, {"UA": "United & Co"}, tmp_path / "picture.svg")
    ElementTree.parse(tmp_path / "picture.svg")


def test_the_view_in_a_terminal_and_without_one(demo):
    report = {
        "sent": 5,
        "total": 10,
        "date": "2013-01-01",
        "seconds": 1.0,
        "stats": {"queued": 1, "dropped": 0, "peers": 1},
    }
    for is_tty in (True, False):
        out = io.StringIO()
        out.isatty = lambda is_tty=is_tty: is_tty
        view = demo["view"].View(out)
        view.show({}, "starting", 0)
        view.show({"EWR": report}, "reading", 0, last=True)
        assert "2013-01-01" in out.getvalue()
        assert ("\x1b[" in out.getvalue()) == is_tty
