"""Z85 and CURVE keys."""

import importlib
import json
import subprocess
import sys

import pytest

# The test case of RFC 32, and the key pair in its reference code.
HELLO = bytes.fromhex("864fd26fb559f75b")
KEY = bytes.fromhex("8e0bdd697628b91d8f245587ee95c5b04d48963f79259877b49cd9063aead3b7")
KEY_TEXT = b"JTKVSB%%)wK0E.X)V>+}o?pNmC{O&4W4b!Ni{Lh6"


@pytest.fixture
def z85(zmq):
    return importlib.import_module(f"{zmq.__name__}.utils.z85")


@pytest.mark.parametrize(
    ("raw", "text"),
    [
        (b"", b""),
        (HELLO, b"HelloWorld"),
        (KEY, KEY_TEXT),
        (bytes(4), b"00000"),
        (b"\xff" * 4, b"%nSc0"),
    ],
)
def test_known_answers(z85, raw, text):
    assert z85.encode(raw) == text
    assert z85.decode(text) == z85.decode(text.decode()) == raw


def test_any_buffer(z85):
    assert z85.encode(bytearray(HELLO)) == z85.encode(memoryview(HELLO)) == b"HelloWorld"


@pytest.mark.parametrize("length", [1, 2, 3, 5, 7])
def test_only_whole_groups_are_encoded(z85, length):
    with pytest.raises(ValueError, match="multiple of 4"):
        z85.encode(bytes(length))


@pytest.mark.parametrize("text", [b"0000", "HelloWorl", b"HelloWorld\0"])
def test_only_whole_groups_are_decoded(z85, text):
    with pytest.raises(ValueError, match="multiple of 5"):
        z85.decode(text)


def test_only_bytes_are_encoded(z85):
    with pytest.raises(TypeError):
        z85.encode("abcd")


def test_only_ascii_is_decoded(z85):
    with pytest.raises(ValueError, match="ASCII"):
        z85.decode("ééééé")


@pytest.mark.zeroxide_only
@pytest.mark.parametrize("text", [b'ab"cd', b"#####", b"%nSc1", b"Hell\xe9"])
def test_invalid_z85_is_a_value_error(z85, text):
    with pytest.raises(ValueError, match="not Z85"):
        z85.decode(text)


# ---- keys ---------------------------------------------------------------------------


def test_key_pairs(zmq, z85):
    assert zmq.has("curve")
    public, secret = zmq.curve_keypair()
    for key in (public, secret):
        assert type(key) is bytes
        assert len(z85.decode(key)) == 32
    assert public != secret
    assert zmq.curve_public(secret) == public
    assert zmq.curve_keypair() != (public, secret)


def test_the_public_key_of_a_known_secret(zmq):
    public = b"rq:rM>}U?@Lns47E1%kR.o@n%FcmmsL/@{H8]yf7"
    assert zmq.curve_public(KEY_TEXT) == zmq.curve_public(KEY_TEXT.decode()) == public


def test_values_that_are_not_secret_keys(zmq):
    with pytest.raises(ValueError, match="key"):
        zmq.curve_public(b"x")
    with pytest.raises(TypeError):
        zmq.curve_public(None)


def keygen(zmq, *arguments):
    command = [sys.executable, "-m", f"{zmq.__name__}.curve_keygen", *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_keygen_writes_a_pair(zmq):
    lines = keygen(zmq).stdout.splitlines()
    assert lines[0] == "== CURVE PUBLIC KEY =="
    assert lines[3] == "== CURVE SECRET KEY =="
    assert zmq.curve_public(lines[4].encode()) == lines[1].encode()


def test_keygen_writes_json(zmq):
    pair = json.loads(keygen(zmq, "--json").stdout)
    assert sorted(pair) == ["public", "secret"]
    assert zmq.curve_public(pair["secret"].encode()) == pair["public"].encode()


def test_keygen_finds_the_public_key(zmq):
    secret = KEY_TEXT.decode()
    public = zmq.curve_public(KEY_TEXT).decode()
    pair = json.loads(keygen(zmq, "--secret", secret, "--json").stdout)
    assert pair == {"public": public, "secret": secret}
    assert keygen(zmq, "--secret", "short").returncode != 0
