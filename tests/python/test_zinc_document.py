"""The document of the example `zinc`: replicas that are edited at the same time become equal."""

import random

import pytest

pytest.importorskip("pycrdt")

from zinc_cluster import Document, Merged, Splice

pytestmark = pytest.mark.zeroxide_only

# Texts of one to four bytes per character.
WORDS = ("", "a", "é", "一二", "🎈", "long word")


def random_splice(chance: random.Random, text: str) -> Splice:
    at = chance.randint(0, len(text))
    return Splice(at, min(chance.choice((0, 0, 1, 3)), len(text) - at), chance.choice(WORDS))


@pytest.mark.parametrize("seed", range(50))
def test_replicas_become_equal(seed) -> None:
    chance = random.Random(seed)
    replicas = [Document(client_id=number + 1) for number in range(3)]
    inboxes: list[list[bytes]] = [[], [], []]
    for _ in range(60):
        number = chance.randrange(3)
        replica, text = replicas[number], replicas[number].text
        if chance.random() < 0.5:
            splice = random_splice(chance, text)
            fragment = replica.splice(splice)
            assert replica.text == splice.apply(text)
            for other in {0, 1, 2} - {number}:
                # Fragments arrive in any order, and more than once.
                inboxes[other] += [fragment] * chance.randint(1, 2)
            continue
        chance.shuffle(inboxes[number])
        while inboxes[number] and chance.random() < 0.7:
            for splice in replica.merge(inboxes[number].pop()).splices:
                text = splice.apply(text)
            assert replica.text == text
    for replica, inbox in zip(replicas, inboxes, strict=True):
        for fragment in inbox:
            replica.merge(fragment)
    assert len({replica.text for replica in replicas}) == 1


def test_a_replica_gets_what_it_lacks() -> None:
    one, other = Document(), Document()
    one.splice(Splice(0, 0, "both"))
    other.merge(one.missing())
    assert other.missing(one.vector()) == b""
    other.splice(Splice(4, 0, " and one"))
    fragment = other.missing(one.vector())
    merged = one.merge(fragment)
    assert (merged.news, merged.splices) == (fragment, (Splice(4, 0, " and one"),))
    # The second time, nothing of it is new.
    assert one.merge(fragment) == Merged()


def test_a_fragment_waits_for_the_one_that_it_depends_on() -> None:
    one, other = Document(), Document()
    first = one.splice(Splice(0, 0, "first"))
    second = one.splice(Splice(5, 0, " second"))
    assert other.merge(second) == Merged(is_held=True)
    merged = other.merge(first)
    assert other.text == "first second"
    assert merged.has_released
    # The news have both.
    assert Document(merged.news).text == "first second"


@pytest.mark.parametrize(
    "body", [b"\xff\xff\xff", b"\0\0\0\2\1", b"\0\0\0\1\0\xff", b"\0\0\0\0\0\0"]
)
def test_what_is_no_fragment_is_an_error(body) -> None:
    document = Document(Document().splice(Splice(0, 0, "text")))
    with pytest.raises(ValueError):
        document.merge(body)
    assert document.text == "text"
