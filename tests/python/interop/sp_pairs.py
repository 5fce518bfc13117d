"""The pairs of socket types that speak the scalability protocols."""

# Our type and the peer's. The first of the two speaks first; True if the other one answers.
WE_SPEAK = [
    ("PAIR", "PAIR", True),
    ("PUSH", "PULL", False),
    ("PUB", "SUB", False),
    ("REQ", "REP", True),
    ("SURVEYOR", "RESPONDENT", True),
    ("BUS", "BUS", True),
]
THEY_SPEAK = [
    ("PAIR", "PAIR", True),
    ("PULL", "PUSH", False),
    ("SUB", "PUB", False),
    ("REP", "REQ", True),
    ("RESPONDENT", "SURVEYOR", True),
    ("BUS", "BUS", True),
]
