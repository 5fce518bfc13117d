"""`zeroxide.pipeline`: the one home of producers, clients and collectors."""

import importlib
import inspect
import pickle
import subprocess
import sys
import typing

import pytest

pytestmark = pytest.mark.zeroxide_only

pipeline = pytest.importorskip("zeroxide.pipeline")

FORMER_HOMES = {
    "zeroxide": ["Client", "Producer"],
    "zeroxide.producer": [
        "AsyncProducer",
        "CollectorError",
        "CollectorGone",
        "Delivery",
        "Fenced",
        "NotAcknowledged",
        "Producer",
        "Refused",
    ],
    "zeroxide.collector": [
        "Client",
        "Collector",
        "CollectorError",
        "CollectorGone",
        "DataLoss",
        "Fenced",
        "FilesLog",
        "Info",
        "NotAcknowledged",
        "Published",
        "Recovery",
        "Refused",
    ],
    "zeroxide.collector.client": ["Client", "Info", "Published"],
    "zeroxide.collector.errors": ["CollectorError", "CollectorGone", "DataLoss", "Refused"],
    "zeroxide.collector.files": ["FilesLog"],
    "zeroxide.collector.archive": ["Archiver", "archive_segments"],
}


@pytest.mark.parametrize("home", FORMER_HOMES)
def test_a_former_home_has_the_same_objects(home):
    module = importlib.import_module(home)
    for name in FORMER_HOMES[home]:
        assert getattr(module, name) is getattr(pipeline, name)


def test_asyncio_has_the_asyncio_forms():
    forms = importlib.import_module("zeroxide.asyncio")
    assert forms.Producer is pipeline.AsyncProducer
    assert forms.Client is pipeline.AsyncClient


@pytest.mark.parametrize("name", pipeline.__all__)
def test_a_public_name_is_shown_under_its_home(name):
    assert name in dir(pipeline)
    value = getattr(pipeline, name)
    if inspect.isclass(value):
        assert (value.__module__, value.__qualname__) == ("zeroxide.pipeline", name)
        assert pickle.loads(pickle.dumps(value)) is value


def test_an_unknown_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="no attribute 'Produzer'"):
        pipeline.Produzer  # noqa: B018


def test_the_pipeline_loads_without_asyncio():
    code = (
        "import sys, zeroxide.pipeline\nassert 'asyncio' not in sys.modules\n"
        "zeroxide.pipeline.AsyncProducer\nassert 'asyncio' in sys.modules\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_both_forms_of_a_producer_have_the_same_options():
    blocking, awaited = pipeline.Producer, pipeline.AsyncProducer
    assert inspect.signature(blocking) == inspect.signature(awaited)
    assert "linger_ms" in inspect.signature(awaited).parameters


def test_former_names_of_arguments_warn():
    with pytest.warns(DeprecationWarning, match="^Producer: timeout was renamed to timeout_s$"):
        producer = pipeline.Producer("tcp://127.0.0.1:9", timeout=0.1)
    message = "^Producer.close: timeout was renamed to timeout_s$"
    with pytest.warns(DeprecationWarning, match=message) as warned:
        producer.close(timeout=0)
    assert warned[0].filename == __file__
    with pytest.warns(DeprecationWarning, match="timeout_s"):
        pipeline.Client("tcp://127.0.0.1:9", timeout=1)
    with pytest.raises(TypeError, match="timeut"):
        pipeline.Client("tcp://127.0.0.1:9", timeut=1)


def test_the_counters_are_those_that_are_declared(directory):
    with pipeline.Collector(directory / "log") as collector:
        with pipeline.Producer(collector.endpoint, on_delivery=print) as producer:
            producer.send(b"row")
            producer.flush()
            stats = producer.stats()
            assert stats.keys() == pipeline.ProducerStats.__annotations__.keys()
            target = stats["collectors"][collector.endpoint]
            assert target.keys() == pipeline.TargetStats.__annotations__.keys()
        declared = typing.get_type_hints(pipeline.CollectorStats).keys()
        with pipeline.Client(collector.endpoint) as client:
            assert client.stats().keys() == declared - {"archived", "archive_failure"}
            assert (
                client.stats()["sync_seconds"].keys() == pipeline.SyncTimes.__annotations__.keys()
            )
    with pipeline.Collector(directory / "log", archive=directory / "archive") as collector:
        assert collector.stats().keys() == declared
