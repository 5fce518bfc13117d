"""Invalid data of other Arrow producers is refused with a reason, and no memory outside it is read."""

import ctypes

import pyarrow as pa
import pytest
from support import run_script

import zeroxide
from zeroxide import _native

pytestmark = pytest.mark.zeroxide_only


class Schema(ctypes.Structure):
    pass


class Array(ctypes.Structure):
    pass


Schema._fields_ = [
    ("format", ctypes.c_char_p),
    ("name", ctypes.c_char_p),
    ("metadata", ctypes.c_char_p),
    ("flags", ctypes.c_int64),
    ("n_children", ctypes.c_int64),
    ("children", ctypes.POINTER(ctypes.POINTER(Schema))),
    ("dictionary", ctypes.POINTER(Schema)),
    ("release", ctypes.c_void_p),
    ("private_data", ctypes.c_void_p),
]
Array._fields_ = [
    ("length", ctypes.c_int64),
    ("null_count", ctypes.c_int64),
    ("offset", ctypes.c_int64),
    ("n_buffers", ctypes.c_int64),
    ("n_children", ctypes.c_int64),
    ("buffers", ctypes.POINTER(ctypes.c_void_p)),
    ("children", ctypes.POINTER(ctypes.POINTER(Array))),
    ("dictionary", ctypes.POINTER(Array)),
    ("release", ctypes.c_void_p),
    ("private_data", ctypes.c_void_p),
]

pointer_of = ctypes.pythonapi.PyCapsule_GetPointer
pointer_of.restype = ctypes.c_void_p
pointer_of.argtypes = [ctypes.py_object, ctypes.c_char_p]


class Foreign:
    """An array of pyarrow whose structs `spoil` has changed."""

    def __init__(self, array, spoil):
        self._array, self._spoil = array, spoil

    def __arrow_c_array__(self, requested_schema=None):
        capsules = self._array.__arrow_c_array__()
        schema = Schema.from_address(pointer_of(capsules[0], b"arrow_schema"))
        array = Array.from_address(pointer_of(capsules[1], b"arrow_array"))
        self.kept = self._spoil(schema, array)
        return capsules


def spoil_release(schema, _array):
    release = ctypes.CFUNCTYPE(None, ctypes.POINTER(Schema))(schema.release)
    release(ctypes.byref(schema))


def spoil_array_release(_schema, array):
    ctypes.CFUNCTYPE(None, ctypes.POINTER(Array))(array.release)(ctypes.byref(array))


def with_field(name, value):
    def spoil(_schema, array):
        setattr(array, name, value)

    return spoil


def with_buffer(index, values):
    """Replaces a buffer."""

    def spoil(_schema, array):
        kept = None if values is None else (ctypes.c_int32 * len(values))(*values)
        array.buffers[index] = None if kept is None else ctypes.addressof(kept)
        return kept

    return spoil


def with_bytes(body):
    def spoil(_schema, array):
        kept = ctypes.create_string_buffer(body)
        array.buffers[2] = ctypes.addressof(kept)
        return kept

    return spoil


TEXT = pa.array(["one", "two", "three"])
NUMBERS = pa.array([1, 2, 3])
LIST = pa.array([[1], [2, 3]])
SPOILT = {
    "released schema": (TEXT, spoil_release, "schema was released"),
    "released array": (
        TEXT,
        spoil_array_release,
        "array was already consumed or released",
    ),
    "negative length": (TEXT, with_field("length", -1), "length -1"),
    "negative offset": (TEXT, with_field("offset", -5), "offset -5"),
    "huge length": (NUMBERS, with_field("length", 1 << 62), "length"),
    "too many nulls": (NUMBERS, with_field("null_count", 4), "nulls"),
    "buffer count": (TEXT, with_field("n_buffers", 2), "2 buffers"),
    "child count": (LIST, with_field("n_children", 0), "0 children"),
    "no offsets": (TEXT, with_buffer(1, None), "offsets of an array are missing"),
    "no bytes": (TEXT, with_buffer(2, None), "is missing"),
    "no numbers": (NUMBERS, with_buffer(1, None), "is missing"),
    "offsets backwards": (
        TEXT,
        with_buffer(1, [0, 6, 3, 11]),
        "offset 2 of an array is 3, after 6",
    ),
    "negative offsets": (TEXT, with_buffer(1, [0, -6, 3, 11]), "is -6"),
    "list offsets backwards": (LIST, with_buffer(1, [0, 3, 1]), "offset 2"),
    "list beyond its child": (LIST, with_buffer(1, [0, 1, 1000]), "not valid"),
    "no text": (TEXT, with_bytes(b"\xff" * 11), "(?i)utf-?8"),
}


@pytest.mark.parametrize("what", SPOILT)
def test_invalid_data_is_refused(what):
    """Every call that takes tables refuses the data, each time."""
    array, spoil, text = SPOILT[what]
    for take in (_native.arrow_encode, _native.arrow_messages):
        with pytest.raises(ValueError, match=text):
            take(Foreign(array, spoil))


def test_streams_of_released_schemas_are_refused(zmq):
    """In a separate process, because reading freed memory may crash."""
    output, _ = run_script(
        "zeroxide",
        """
        import ctypes
        import pyarrow as pa
        from zeroxide import _native

        GET = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p)
        RELEASE = ctypes.CFUNCTYPE(None, ctypes.c_void_p)

        class Stream(ctypes.Structure):
            _fields_ = [("get_schema", GET), ("get_next", GET), ("get_last_error", ctypes.c_void_p),
                        ("release", RELEASE), ("private_data", ctypes.c_void_p)]

        class Foreign:
            def __arrow_c_stream__(self, requested_schema=None):
                # A schema of nothing but zeros is a released one.
                def nothing(_stream, out):
                    return 0
                self.kept = stream = Stream(GET(nothing), GET(nothing), None, RELEASE(lambda _: None), None)
                make = ctypes.pythonapi.PyCapsule_New
                make.restype = ctypes.py_object
                make.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
                return make(ctypes.addressof(stream), b"arrow_array_stream", None)

        for _ in range(3):
            try:
                _native.arrow_encode(Foreign())
            except ValueError as error:
                print(error)
        """,
    )
    assert output.count("the schema was released before") == 3


@pytest.mark.parametrize(
    "array",
    [
        TEXT,
        TEXT.slice(1, 1),
        NUMBERS,
        LIST,
        pa.array([], pa.string()),
        pa.array([None, "x"]),
        pa.array([None, None]),
        pa.array([b"a"], pa.large_binary()),
        pa.array(["a", "b", "a"]).dictionary_encode(),
        pa.array([{"a": 1, "b": [2]}, {"a": None, "b": None}]),
        pa.array([[("k", 1)]], pa.map_(pa.string(), pa.int64())),
        pa.array([[1, 2]], pa.list_(pa.int32(), 2)),
        pa.array([True, None]),
        pa.array([1.5, None]),
        pa.array(["view", "a longer text than fits into a view"], pa.string_view()),
        pa.array([b"12"], pa.binary(2)),
        pa.nulls(3),
        pa.UnionArray.from_sparse(
            pa.array([0, 1], pa.int8()), [pa.array([1, 2]), pa.array(["a", "b"])]
        ),
        pa.UnionArray.from_dense(
            pa.array([0, 1], pa.int8()),
            pa.array([0, 0], pa.int32()),
            [pa.array([1]), pa.array(["a"])],
        ),
    ],
    ids=lambda array: str(array.type),
)
def test_valid_data_is_accepted(array):
    table = pa.table({"column": array})
    assert pa.table(zeroxide._native.arrow_decode(_native.arrow_encode(table))).equals(table)
