"""Values of options from the environment, files and certificates."""

import pytest

from zeroxide import curve_public
from zeroxide.auth import create_certificates
from zeroxide.spark._sockets import look_up

SECRET, PUBLIC = "zmq.curve_secretkey", "zmq.curve_serverkey"


def test_values_as_given_from_the_environment_and_from_a_file(tmp_path, monkeypatch):
    monkeypatch.setenv("KEY", "from the environment")
    (tmp_path / "key").write_text("from a file\n")
    assert look_up(PUBLIC, "itself") == "itself"
    assert look_up(SECRET, "env:KEY") == "from the environment"
    assert look_up(SECRET, f"file:{tmp_path}/key") == "from a file"


def test_a_certificate_stands_for_its_key(tmp_path):
    public_file, secret_file = create_certificates(tmp_path, "query")
    secret = look_up(SECRET, f"file:{secret_file}")
    assert look_up("collector.secretKey", f"file:{secret_file}") == secret
    public = look_up(PUBLIC, f"file:{public_file}")
    assert public == look_up("zmq.curve_publickey", f"file:{secret_file}")
    assert curve_public(secret.encode()).decode() == public
    with pytest.raises(ValueError, match=r"'collector\.secretKey'.*holds no secret key"):
        look_up("collector.secretKey", f"file:{public_file}")


def test_missing_values_are_named(tmp_path):
    with pytest.raises(ValueError, match=r"'zmq\.curve_secretkey': there is no NOWHERE"):
        look_up(SECRET, "env:NOWHERE")
    missing = f"{tmp_path}/missing"
    with pytest.raises(ValueError, match=f"'zmq.curve_secretkey': cannot take it from {missing}"):
        look_up(SECRET, f"file:{missing}")


def test_a_wrong_key_is_named_at_once_by_source_and_sink(tmp_path, monkeypatch):
    import time

    import pyarrow as pa

    from zeroxide import curve_keypair
    from zeroxide.pipeline import Collector, Refused
    from zeroxide.spark._schema import spark_schema
    from zeroxide.spark.source import ZeroMQDataSource

    server, own = curve_keypair(), curve_keypair()
    monkeypatch.setenv("SECRET", own[1].decode())
    wrong = {PUBLIC: curve_keypair()[0].decode(), SECRET: "env:SECRET"}
    with Collector(tmp_path / "log", secret_key=server[1], allow="*") as collector:
        for keys, text in (({}, "requires CURVE"), (wrong, "server_key is not")):
            source = ZeroMQDataSource({"endpoint": collector.endpoint} | keys)
            began = time.monotonic()
            with pytest.raises(Refused, match=text):
                source.reader(source.schema()).partitions()
            sink = ZeroMQDataSource({"endpoint": collector.endpoint, "socket": "log"} | keys)
            rows = pa.record_batch({"value": pa.array([b"a row"])})
            with pytest.raises(Refused, match=text):
                sink.writer(spark_schema(["value"]), False).write(iter([rows]))
            # Far less than any of their timeouts.
            assert time.monotonic() - began < 10
