"""The command `zeroxide verify`: damage of every kind in the files of a log."""

import json
import os
import shutil
import subprocess
import sys

import pytest
from collecting import process
from commands import run

pytestmark = pytest.mark.zeroxide_only

pipeline = pytest.importorskip("zeroxide.pipeline")
pytest.importorskip("pyarrow")


@pytest.fixture(scope="module")
def original(tmp_path_factory):
    """A log of several segments, one row per batch."""
    folder = tmp_path_factory.mktemp("original") / "log"
    with pipeline.Collector(folder, segment_bytes=64 << 10) as collector:
        for number in range(40):
            collector.append([b"row %d " % number + os.urandom(8000)])
    assert len(list(folder.glob("*.zlog"))) > 2
    return folder


@pytest.fixture
def folder(original, tmp_path):
    shutil.copytree(original, tmp_path / "log")
    return tmp_path / "log"


def verify(folder, status):
    return json.loads(run("verify", folder, "--json", status=status)[0])


def segments(folder):
    return sorted(folder.glob("*.zlog"))


def flip(file, position):
    data = bytearray(file.read_bytes())
    data[position] ^= 1
    file.write_bytes(data)


def test_a_whole_log(folder):
    output = run("verify", folder)[0].decode()
    assert output.endswith("offsets 0 to 40, 40 rows can be read\nno damage\n")
    assert output.count("\n") == 2
    shown = run("verify", folder, "--verbose")[0].decode()
    assert shown.count(".zlog") == len(segments(folder))
    facts = verify(folder, 0)
    assert facts["whole"] and facts["rows"] == 40 and facts["lost_rows"] == 0


@pytest.mark.parametrize("which", [0, 1, -1])
def test_a_flipped_bit_in_a_row(folder, which):
    file = segments(folder)[which]
    data = file.read_bytes()
    position = data.index(b"row ", len(data) // 3)
    row = int(data[position + 4 :].split(b" ", 1)[0])
    flip(file, position)
    facts = verify(folder, 1)
    assert facts["lost_rows"] == 1 and facts["rows"] == 39 and not facts["whole"]
    (damage,) = [one for segment in facts["segments"] for one in segment["damage"]]
    assert (damage["first"], damage["end"]) == (row, row + 1)
    assert damage["position"] < position and "checksum" in damage["what"]
    text = run("verify", folder, status=1)[0].decode()
    assert f"{file.name} at byte {damage['position']}: offsets {row} to {row + 1}" in text
    assert text.endswith("DAMAGED: 1 row lost\n")


def test_several_flipped_bits(folder):
    for file in segments(folder)[:2]:
        data = file.read_bytes()
        for part in (4, 2):
            flip(file, data.index(b"row ", len(data) // part))
    assert verify(folder, 1)["lost_rows"] == 4


def test_a_flipped_bit_in_the_header_of_a_frame(folder):
    file = segments(folder)[0]
    data = file.read_bytes()
    flip(file, data.index(b"ZXF1", len(data) // 2) + 24)
    assert verify(folder, 1)["lost_rows"] == 1


@pytest.mark.parametrize("which", [0, 1, -1])
def test_a_flipped_bit_in_the_header_of_the_first_frame(folder, which):
    file = segments(folder)[which]
    flip(file, file.read_bytes().index(b"ZXF1") + 24)
    facts = verify(folder, 1)
    assert facts["lost_rows"] == 1 and facts["rows"] == 39
    first = int(file.stem)
    with pipeline.FilesLog(folder) as log:
        info = log.info()
        with pytest.raises(pipeline.Refused, match=f"offsets {first} to {first + 1} cannot be"):
            list(log.fetch(info.earliest, info.latest))


@pytest.mark.parametrize("which", [0, -1])
def test_a_flipped_bit_in_the_header_of_a_segment(folder, which):
    file = segments(folder)[which]
    flip(file, 20)
    facts = verify(folder, 1)
    (state,) = [one for one in facts["segments"] if one["name"] == file.name]
    assert state["rows"] == 0 and state["damage"][0]["what"]
    assert facts["lost_rows"] == state["end"] - state["first"] > 0


@pytest.mark.parametrize("which", [0, -1])
def test_a_truncated_segment(folder, which):
    file = segments(folder)[which]
    os.truncate(file, file.stat().st_size - 9000)
    facts = verify(folder, 1)
    assert facts["lost_rows"] == 2 and facts["rows"] == 38


@pytest.mark.parametrize("how", ["torn", "flipped", "flipped without a checksum"])
@pytest.mark.parametrize("which", [0, -1])
def test_a_damaged_index_of_an_archive(folder, tmp_path, which, how):
    pipeline.Archiver(folder, str(tmp_path / "archive")).close()
    assert verify(tmp_path / "archive", 0)["whole"]
    file = sorted((tmp_path / "archive").glob("*.index"))[which]
    fields = json.loads(file.read_text())
    fields["end"] ^= 1
    if how != "flipped":
        fields.pop("crc32", None)
    file.write_text("" if how == "torn" else json.dumps(fields))
    facts = verify(tmp_path / "archive", 1)
    assert facts["rows"] == facts["latest"] == 40 and facts["lost_rows"] == 0
    text = run("verify", tmp_path / "archive", status=1)[0].decode()
    assert f"{file.stem}.zlog: its index is damaged: delete {file.name}, which" in text
    file.unlink()
    assert verify(tmp_path / "archive", 0)["whole"]


def test_a_lost_segment(folder):
    file = segments(folder)[1]
    end = int(segments(folder)[2].stem)
    file.unlink()
    facts = verify(folder, 1)
    assert facts["lost_rows"] == end - int(file.stem) and facts["latest"] == 40


def test_a_segment_of_another_log(folder, tmp_path):
    with pipeline.Collector(tmp_path / "other", segment_bytes=64 << 10) as collector:
        for _ in range(40):
            collector.append([os.urandom(8000)])
    file = segments(folder)[1]
    shutil.copy(tmp_path / "other" / file.name, file)
    facts = verify(folder, 1)
    assert "belongs to the log" in facts["segments"][1]["damage"][0]["what"]


def test_bytes_between_segments(folder):
    with segments(folder)[0].open("ab") as file:
        file.write(b"\0" * 24)
    facts = verify(folder, 1)
    assert facts["lost_rows"] == 0 and facts["rows"] == 40
    assert "24 bytes after the last row" in facts["segments"][0]["damage"][0]["what"]


def test_an_incomplete_tail_is_no_damage(folder):
    """As a crash leaves it."""
    with segments(folder)[-1].open("ab") as file:
        file.write(b"ZXF1" + b"\1" * 100)
    facts = verify(folder, 0)
    assert facts["tail_bytes"] == 104 and facts["rows"] == 40


def test_an_archive(folder, tmp_path):
    pipeline.Archiver(folder, str(tmp_path / "archive")).close()
    assert verify(tmp_path / "archive", 0)["rows"] == 40
    assert verify(f"file://{tmp_path}/archive", 0)["rows"] == 40


def test_while_a_collector_writes(directory):
    folder = directory / "log"
    with process(folder) as collector, pipeline.Producer(collector.endpoint) as producer:
        for number in range(5):
            producer.send_batch([os.urandom(100)] * 1000)
            producer.flush()
            facts = verify(folder, 0)
            assert facts["rows"] >= (number + 1) * 1000


def test_it_changes_nothing(folder):
    def contents():
        return {file.name: file.read_bytes() for file in folder.iterdir() if file.is_file()}

    before = contents()
    run("verify", folder)
    assert contents() == before


def test_no_log(tmp_path):
    for folder in (tmp_path, tmp_path / "none"):
        assert "holds no log" in run("verify", folder, status=1)[1]


def test_without_pyarrow(folder):
    code = (
        "import sys; sys.modules['pyarrow'] = None\n"
        f"from zeroxide.cli import main; sys.exit(main(['verify', {str(folder)!r}]))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 1
    assert done.stderr == "zeroxide: zeroxide verify needs pyarrow: pip install 'zeroxide[arrow]'\n"
