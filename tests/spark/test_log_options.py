"""The options of reading a log: names, defaults, and errors about wrong ones."""

import pickle
import re
from pathlib import Path

import pytest

from zeroxide.spark import log_options
from zeroxide.spark.log_options import Kept, LogReadOptions

ENDPOINT = {"endpoint": "tcp://127.0.0.1:5555"}
EMBEDDED = ENDPOINT | {"collector": "embedded", "collector.dir": "/log"}


def parse(given=None, *, streaming=True, **more):
    options = ENDPOINT | (given or {}) | more
    options = {name: value for name, value in options.items() if value is not None}
    return LogReadOptions.parse(options, streaming=streaming)


def test_defaults():
    read = parse()
    assert (read.starting, parse(streaming=False).starting) == ("latest", "earliest")
    assert (read.ending, read.fetch, read.fail_on_data_loss) == ("latest", "socket", True)
    assert (read.timeout_ms, read.retries, read.grace_ms) == (10_000, 3, 60_000)
    assert read.max_offsets is read.max_bytes is read.min_offsets is read.group is None
    assert read.max_delay_ms == 900_000
    assert read.topics == ()
    assert read.embedded is None


def test_names_in_any_case():
    read = parse({"MAXOFFSETSPERTRIGGER": "3", "fetch.timeoutms": "5", "COLLECTOR.graceMs": "7"})
    assert (read.max_offsets, read.timeout_ms, read.grace_ms) == (3, 5, 7)


def test_offsets_per_collector():
    text = '{"tcp://a:1": 70, "tcp://b:1": "earliest", "tcp://c:1": -1, "tcp://d:1": -2}'
    assert parse(startingOffsets=text).starting == {
        "tcp://a:1": 70,
        "tcp://b:1": "earliest",
        "tcp://c:1": "latest",
        "tcp://d:1": "earliest",
    }
    assert parse(startingOffsets="EARLIEST").starting == "earliest"


def test_offsets_out_of_a_checkpoint():
    text = '{"version":1,"collectors":{"tcp://a:1":{"log":"5f","offset":7,"partition":0}}}'
    assert parse(startingOffsets=text).starting == {"tcp://a:1": Kept(7, "5f")}


@pytest.mark.parametrize(
    ("text", "micros"),
    [
        ("1700000000123", 1_700_000_000_123_000),
        ("2023-11-14T22:13:20Z", 1_700_000_000_000_000),
        ("2023-11-14T22:13:20", 1_700_000_000_000_000),
        ("2023-11-15 00:13:20.5+02:00", 1_700_000_000_500_000),
    ],
)
def test_times(text, micros):
    assert parse(startingTimestamp=text).starting_timestamp == micros


@pytest.mark.parametrize(
    ("text", "millis"), [("250", 250), ("250ms", 250), ("10s", 10_000), ("15 m", 900_000)]
)
def test_durations(text, millis):
    assert parse(maxTriggerDelay=text).max_delay_ms == millis


def test_keys_travel_by_name():
    read = parse({"zmq.curve_serverkey": "x" * 40, "zmq.curve_secretkey": "env:KEY"})
    assert dict(read.keys) == {"curve_serverkey": "x" * 40, "curve_secretkey": "env:KEY"}
    assert pickle.loads(pickle.dumps(read)) == read


def test_embedded():
    read = parse(EMBEDDED | {"endpoint": "tcp://*:5555", "collector.retentionBytes": "5"})
    assert read.embedded.directory == "/log"
    assert read.embedded.bind == "tcp://*:5555"
    assert read.embedded.retention_bytes == 5
    assert parse(EMBEDDED | {"collector.retentionHours": "0.5"}).embedded.retention_hours == 0.5
    assert parse(EMBEDDED | {"endpoint": str(["tcp://*:5555"])}).embedded.bind == "tcp://*:5555"


def test_a_folder_needs_no_endpoint():
    given = {"fetch": "files", "collector.dir": "/log,s3://bucket/log"}
    assert LogReadOptions.parse(given, streaming=False).endpoints == ("/log", "s3://bucket/log")


def test_a_batch_takes_the_options_of_a_stream():
    assert parse(streaming=False, maxOffsetsPerTrigger="5", consumerGroup="g")


def test_filters_are_for_a_frame_that_is_used_once():
    options = {"endpoint": "tcp://a:1"}
    for value in ("true", "twice"):
        with pytest.raises(ValueError, match=r"would miss rows without an error.*'once'"):
            LogReadOptions.parse(options | {"filterPushdown": value}, streaming=False)
    for value, parsed in (("Once", "once"), ("false", None)):
        read = LogReadOptions.parse(options | {"filterPushdown": value}, streaming=False)
        assert read.filter_pushdown == parsed


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"startOffsets": "latest"}, "no option 'startOffsets'; did you mean 'startingOffsets'?"),
        ({"startingOffsets": "newest"}, "it should be earliest, latest, or JSON"),
        ({"startingOffsets": "[1]"}, "it should be earliest, latest, or JSON"),
        ({"startingOffsets": '{"tcp://a:1": "x"}'}, "it should be earliest, latest, or JSON"),
        ({"startingTimestamp": "today"}, "milliseconds since 1970"),
        ({"startingTimestamp": "9" * 19}, "option 'startingTimestamp' is '9999"),
        ({"maxTriggerDelay": "soon"}, "a time like 500ms"),
        ({"maxOffsetsPerTrigger": "0"}, "a whole number of at least 1"),
        ({"minOffsetsPerTrigger": "5", "maxOffsetsPerTrigger": "4"}, "above"),
        ({"endingOffsets": "earliest"}, "a stream does not end"),
        ({"endingTimestamp": "5"}, "a stream does not end"),
        ({"filterPushdown": "true"}, "is for spark.read"),
        ({"timeoutMs": "5"}, "'timeoutMs' is for mode=live"),
        ({"socket": "sub"}, "'socket' is for mode=live"),
        ({"framing": "envelope"}, "mode=live or collector=embedded"),
        ({"collector.pull": "tcp://*:1"}, "'collector.pull' is for collector=embedded"),
        ({"collector.secretKey": "env:X"}, "'collector.secretKey' is for collector=embedded"),
        ({"collector.secretKey": "x" * 40}, "would show its value in query plans"),
        ({"zmq.curve_secretkey": "x" * 40}, "would show its value in query plans"),
        ({"zmq.plain_password": "x"}, "would show its value in query plans"),
        ({"zmq.rcvhwm": "5"}, "'zmq.rcvhwm' is for mode=live"),
        ({"fetch": "files"}, "one folder in option 'collector.dir' for each endpoint"),
        ({"fetch": "mail"}, "socket, files"),
        ({"collector.dir": "/log"}, "is for fetch=files or collector=embedded"),
        ({"endpoint": "tcp://a:1,tcp://a:1"}, "names a collector twice"),
        ({"endpoint": "tcp://*:5555"}, "which can only be bound"),
        ({"endpoint": "tcp://0.0.0.0:5555"}, "which can only be bound"),
        ({"endpoint": ""}, "'endpoint' is missing"),
        (EMBEDDED | {"collector.secretKey": "env:X"}, "belong together"),
        (EMBEDDED | {"collector.retentionHours": "0"}, "a number above 0"),
        ({"collector": "embedded"}, "needs option 'collector.dir'"),
        (EMBEDDED | {"endpoint": "tcp://a:1,tcp://b:1"}, "binds to one endpoint"),
    ],
)
def test_wrong_options_of_streams(given, said):
    with pytest.raises(ValueError, match="option") as error:
        parse(given)
    assert said in str(error.value)
    assert "\n" not in str(error.value)
    assert "xxxx" not in str(error.value)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"startingOffsets": "latest"}, "a batch that begins there is empty"),
        ({"endingOffsets": "earliest"}, "a batch that ends there is empty"),
        (EMBEDDED, "reads the same folder with fetch=files"),
        (
            {"endpoint": None, "fetch": "files", "collector.dir": "/log", "consumerGroup": "g"},
            "needs option 'endpoint'",
        ),
    ],
)
def test_wrong_options_of_batches(given, said):
    with pytest.raises(ValueError, match="option") as error:
        parse(given, streaming=False)
    assert said in str(error.value)


def test_every_option_is_documented():
    """The page and the module's docstring list every option."""
    asked = re.compile(
        r'(?:text|choice|flag|number|names|where|time|duration|hours)\(\s*"([\w.]+)"'
    )
    names = set(asked.findall(Path(log_options.__file__).read_text()))
    assert {"startingOffsets", "collector.graceMs", "maxBytesPerTrigger"} < names
    page = Path(__file__).resolve().parents[2] / "docs" / "spark" / "reading.md"
    for text in (page.read_text(), log_options.__doc__):
        assert [name for name in sorted(names) if f"`{name}`" not in text] == []
