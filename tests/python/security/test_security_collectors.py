"""What the clients of a collector can cost: its log keeps a limited number of names for them."""

import asyncio

import pytest
from support import PATIENCE

pytestmark = pytest.mark.zeroxide_only

collectors = pytest.importorskip("zeroxide.pipeline")

GROUPS = 10_000


async def commit_all(endpoint):
    """Commits the position of as many groups as there may be."""
    client = collectors.AsyncClient(endpoint, timeout_s=PATIENCE)
    await asyncio.gather(*(client.commit(f"group {number}", 0) for number in range(GROUPS)))
    await client.close()


def test_groups_have_a_limit_and_a_dropped_one_makes_room(directory):
    def is_refused(client, group):
        with pytest.raises(collectors.Refused, match=f"{GROUPS}") as refused:
            client.commit(group, 0)
        return refused.value.code == "too-many"

    with collectors.Collector(directory / "log") as collector:
        client = collectors.Client(collector.endpoint, timeout_s=PATIENCE)
        asyncio.run(commit_all(collector.endpoint))
        assert is_refused(client, "other")
        assert collector.stats()["refused"]["too-many"] == 1
        # Those that it has go on.
        collector.append([b"row"])
        assert client.commit("group 0", 1) == 1
    # The file that it keeps them in has no more of them than that, either.
    with collectors.Collector(directory / "log") as collector:
        client = collectors.Client(collector.endpoint, timeout_s=PATIENCE)
        assert len(client.groups()) + client.stats()["groups_unlisted"] == GROUPS
        assert is_refused(client, "other")
        client.drop_group("group 1")
        client.commit("other", 1)
        assert is_refused(client, "one more")
