"""The client for requests to other servers leaves nothing behind, however often one is opened."""

import asyncio
from collections.abc import Callable
from contextlib import aclosing
from pathlib import Path
from typing import Any

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


def record_addresses(addresses: list[Any]) -> Callable[[Any], None]:
    def response(handler: Any) -> None:
        addresses.append(handler.client_address)
        respond_with(200)(handler)

    return response


def test_an_idle_connection_is_closed_and_one_in_use_is_not(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client, "IDLE_TIME", 0)
    addresses: list[Any] = []

    async def post_and_wait(url: str) -> None:
        async with aclosing(Client(time_out=5, max_traffic=1_000, allow_private=True, headers={})) as idle_client:
            # The timer of the first request would end during the second one.
            for _ in range(2):
                await idle_client.request("POST", url)
            [connections] = idle_client.idle.values()
            async with asyncio.timeout(5):
                while connections:
                    await asyncio.sleep(POLL_INTERVAL)

    with start_receiver(record_addresses(addresses)) as receiver:
        asyncio.run(post_and_wait(receiver.url))
    assert (len(addresses), len(set(addresses))) == (2, 1)


def test_two_requests_at_once_have_two_connections() -> None:
    addresses: list[Any] = []

    async def post_two(url: str) -> None:
        async with aclosing(Client(time_out=5, max_traffic=1_000, allow_private=True, headers={})) as new_client:
            await new_client.request("POST", url)
            both = await asyncio.gather(*(new_client.request("POST", url) for _ in range(2)))
            assert [response.status for response in both] == [200, 200]

    with start_receiver(record_addresses(addresses)) as receiver:
        asyncio.run(post_two(receiver.url))
    assert (len(addresses), len(set(addresses))) == (3, 2)
