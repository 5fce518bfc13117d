"""A stream that cannot be read says why, whatever a version of Spark calls first."""

import pytest

from zeroxide.spark._refused import RefusedStream


@pytest.mark.parametrize(
    ("call", "arguments"),
    [
        ("initialOffset", ()),
        ("latestOffset", ()),  # until Spark 4.1
        ("latestOffset", ({}, None)),
        ("getDefaultReadLimit", ()),
        ("partitions", ({}, {})),
        ("read", (None,)),
        ("commit", ({},)),
    ],
)
def test_each_call_raises_the_reason(call, arguments):
    error = ValueError("option 'mode' is 'live'")
    with pytest.raises(ValueError, match="option 'mode' is 'live'") as caught:
        getattr(RefusedStream(error), call)(*arguments)
    assert caught.value is error
