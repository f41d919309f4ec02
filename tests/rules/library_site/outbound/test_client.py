"""The client for requests to other servers leaves nothing behind, however often one is opened."""

import asyncio
from contextlib import aclosing
from pathlib import Path

import pytest

from library_site.outbound import client
from library_site.outbound.client import Client
from tests.support.receivers import respond_with, start_receiver
from tests.support.waiting import POLL_INTERVAL, wait_until

CLIENTS = 10


async def post_and_close(url: str) -> None:
    async with aclosing(Client(time_out=5, max_traffic=1_000, allow_private=True, headers={})) as new_client:
        await new_client.request("POST", url)


def count_descriptors() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


def test_a_closed_client_leaves_no_descriptor_open() -> None:
    with start_receiver(respond_with(200)) as receiver:
        before = count_descriptors()
        for _ in range(CLIENTS):
            asyncio.run(post_and_close(receiver.url))
        # The threads of their resolvers, and those of the receiver, end a moment later.
        wait_until(lambda: count_descriptors() < before + CLIENTS)


def test_an_idle_connection_is_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client, "IDLE_TIME", 0)

    async def post_and_wait(url: str) -> None:
        async with aclosing(Client(time_out=5, max_traffic=1_000, allow_private=True, headers={})) as idle_client:
            await idle_client.request("POST", url)
            [connections] = idle_client.idle.values()
            async with asyncio.timeout(5):
                while connections:
                    await asyncio.sleep(POLL_INTERVAL)

    with start_receiver(respond_with(200)) as receiver:
        asyncio.run(post_and_wait(receiver.url))
