"""The order of the runs of a case."""

from dataclasses import replace

import bench
import pytest
from cases import CASES


def test_the_others_get_the_figures_of_the_first(monkeypatch: pytest.MonkeyPatch):
    told = []

    def run(module: str, case: object, parameters: dict[str, object]) -> dict[str, float]:
        told.append((module, parameters.get("rival_peak")))
        return {"peak": float(len(told)), "foreign": 0.0}

    monkeypatch.setattr(bench, "run", run)
    case = next(case for case in CASES if case.told)
    modules = {"pyzmq": "zmq", "zeroxide": "zeroxide"}
    bench.interleave(case, modules, replace(bench.SMOKE, repetitions=2), retries=0)
    assert told == [("zmq", None), ("zeroxide", 1.0), ("zeroxide", 1.0), ("zmq", None)]
