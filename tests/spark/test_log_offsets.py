"""Offsets, the division of limits, and the splitting of ranges."""

import json
import random
from itertools import pairwise

import pytest

from zeroxide.spark._offsets import Position, Range, dump, load, ranges, share, split


def test_json_and_back():
    offsets = {"tcp://a:1": Position("5f", 7, 0), "tcp://b:1": Position("60", 9, 1, begin=3)}
    text = json.dumps(dump(offsets))
    assert json.loads(text) == {
        "version": 1,
        "collectors": {
            "tcp://a:1": {"log": "5f", "offset": 7, "partition": 0},
            "tcp://b:1": {"log": "60", "offset": 9, "partition": 1, "from": 3},
        },
    }
    assert load(json.loads(text)) == offsets


def test_json_of_a_newer_version():
    said = "have version 2, but this zeroxide supports version 1.*new checkpointLocation"
    with pytest.raises(ValueError, match=said):
        load({"version": 2, "collectors": {}})


ENTRY = {"log": "5f", "offset": 7, "partition": 0}


@pytest.mark.parametrize(
    "kept",
    [
        5,
        None,
        True,
        "5",
        [],
        [{"version": 1}],
        {},
        {"index": 5},
        {"topic": {"0": 23}},
        {"version": True, "collectors": {}},
        {"version": "1", "collectors": {}},
        {"version": 1},
        {"version": 1, "collectors": None},
        {"version": 1, "collectors": [ENTRY]},
        {"version": 1, "collectors": {"tcp://a:1": 7}},
        {"version": 1, "collectors": {"tcp://a:1": {}}},
        *(
            {"version": 1, "collectors": {"tcp://a:1": ENTRY | wrong}}
            for wrong in (
                {"log": 5},
                {"log": None},
                {"offset": "7"},
                {"offset": 7.5},
                {"offset": -1},
                {"offset": True},
                {"partition": None},
                {"from": "3"},
                {"since": [3]},
                {"generation": 4},
            )
        ),
    ],
)
def test_json_of_others(kept):
    with pytest.raises(ValueError) as error:
        load(kept)
    shown, _, reason = str(error.value).partition(" are not offsets of the format zeromq: ")
    assert shown == json.dumps(kept)
    assert reason.startswith("the checkpoint belongs to another source")
    assert reason.endswith("give the query a new checkpointLocation")


def test_long_json_of_others_is_cut():
    with pytest.raises(ValueError, match=r"^\[0, 1, .* \.\.\. are not offsets") as error:
        load(list(range(100_000)))
    assert len(str(error.value)) < 500


def test_ranges_belong_to_a_log_not_to_a_name():
    start = {"old name": Position("a", 5, 0), "b": Position("b", 3, 1)}
    end = {"new name": Position("a", 8, 0), "b": Position("b", 3, 1)}
    assert ranges(start, end) == [Range("new name", "a", 0, 5, 8)]


def test_ranges_of_a_new_log():
    start = {"a": Position("a", 5, 0)}
    assert ranges(start, {"b": Position("b", 8, 1, begin=2)}) == [Range("b", "b", 1, 2, 8)]
    with pytest.raises(ValueError, match="start of the batch is unknown"):
        ranges(start, {"b": Position("b", 8, 1)})


def test_ranges_begin_after_lost_rows():
    end = {"a": Position("a", 20, 0, begin=10)}
    assert ranges({"a": Position("a", 5, 0)}, end) == [Range("a", "a", 0, 10, 20)]
    assert ranges({"a": Position("a", 15, 0)}, end) == [Range("a", "a", 0, 10, 20)]
    assert ranges(end, end) == []
    assert ranges(end, {"a": Position("a", 30, 0)}) == [Range("a", "a", 0, 20, 30)]
    assert ranges({"a": Position("a", 25, 0)}, {"a": Position("a", 20, 0)}) == []


@pytest.mark.parametrize(
    ("available", "most", "shares"),
    [
        ({"a": 10, "b": 10}, 30, {"a": 10, "b": 10}),
        ({"a": 30, "b": 10}, 20, {"a": 15, "b": 5}),
        ({"a": 1_000_000, "b": 1}, 10, {"a": 9, "b": 1}),
        ({"a": 5, "b": 0}, 3, {"a": 3, "b": 0}),
        ({"a": 5, "b": 5, "c": 5}, 1, {"a": 1, "b": 0, "c": 0}),
        ({}, 5, {}),
    ],
)
def test_share(available, most, shares):
    assert share(available, most) == shares


def test_share_always_adds_up():
    chance = random.Random(7)
    for _ in range(2_000):
        available = {str(n): chance.choice([0, 1, 5, 10**6, 10**12]) for n in range(6)}
        most = chance.choice([1, 3, 6, 1000, 10**9])
        shares = share(available, most)
        assert sum(shares.values()) == min(most, sum(available.values()))
        assert all(0 <= shares[name] <= available[name] for name in available)
        with_rows = sum(count > 0 for count in available.values())
        if most >= with_rows:
            assert all(shares[name] for name in available if available[name])


def test_split_covers_everything_once():
    chance = random.Random(8)
    for _ in range(500):
        found = [
            Range(
                str(n), str(n), n, start := chance.randrange(100), start + chance.randrange(1, 99)
            )
            for n in range(chance.randrange(1, 4))
        ]
        most = chance.choice([None, 1, 10, 1000])
        pieces = split(found, chance.randrange(1, 20), most_rows=most, least_rows=1)
        for whole in found:
            own = [piece for piece in pieces if piece.log == whole.log]
            assert own[0].start == whole.start
            assert own[-1].end == whole.end
            assert all(a.end == b.start for a, b in pairwise(own))
            assert all(piece.rows > 0 for piece in own)
            assert most is None or all(piece.rows <= most for piece in own)


def test_split_in_proportion():
    found = [Range("a", "a", 0, 0, 300_000), Range("b", "b", 1, 0, 100_000)]
    pieces = split(found, 8, most_rows=None, least_rows=1)
    assert [piece.name for piece in pieces] == ["a"] * 6 + ["b"] * 2
    # Small ranges are not split only to reach the number.
    assert len(split(found, 8, most_rows=None, least_rows=100_000)) == 4
    assert len(split(found, 1, most_rows=50_000, least_rows=100_000)) == 8
