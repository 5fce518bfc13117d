"""`zeroxide.pipeline`: the one home of producers, clients and collectors."""

import importlib
import inspect
import pickle
import subprocess
import sys

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
