"""The client for requests to other servers leaves nothing behind, however often one is opened."""

import asyncio
from pathlib import Path

from library_site.outbound.client import open_client
from tests.support.waiting import wait_until

CLIENTS = 10


async def open_and_close() -> None:
    async with open_client(connections=1, time_out=1, max_traffic=1, allow_private=False, headers={}):
        pass


def count_descriptors() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


def test_a_closed_client_leaves_no_descriptor_open() -> None:
    before = count_descriptors()
    for _ in range(CLIENTS):
        asyncio.run(open_and_close())
    # The threads of their resolvers end a moment later.
    wait_until(lambda: count_descriptors() < before + CLIENTS)
