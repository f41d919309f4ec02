"""Which addresses a request may reach: checked at each connection, after the name was resolved."""

import asyncio
import socket
from collections.abc import Iterable
from contextlib import aclosing, closing
from ipaddress import ip_address
from unittest.mock import AsyncMock
from urllib.parse import urlsplit

import pytest

from library_site.outbound.addresses import ForbiddenAddress, build_socket_factory, is_public
from library_site.outbound.client import Client
from tests.support.receivers import respond_with, start_receiver

# IP addresses that are not public.
PRIVATE_V4 = """
    0.0.0.0 0.255.255.255 10.0.0.1 100.64.0.1 100.100.100.200 100.127.255.255 127.0.0.1 127.255.255.255
    168.63.129.16 169.254.169.254 172.16.0.1 172.31.255.255 192.0.0.9 192.0.0.192 192.0.2.1 192.88.99.1 192.168.1.1
    198.18.0.1 198.19.255.255 198.51.100.1 203.0.113.1 224.0.0.1 239.255.255.255 240.0.0.1 255.255.255.255
""".split()
PRIVATE_V6 = """
    :: ::1 0:0:0:0:0:0:0:1 100::1 2001:2::1 2001:10::1 2001:db8::1 3fff::1 4000::1 5f00::1 fc00::1 fd00:ec2::254
    fe80::1 fec0::1 ff02::1 ff0e::1
""".split()
# Those with a public IPv4 address inside, too: no server on the internet has such an address.
V4_IN_V6 = """
    ::ffff:127.0.0.1 ::ffff:8.8.8.8 ::ffff:7f00:1 ::ffff:0:127.0.0.1 ::127.0.0.1 ::8.8.8.8 64:ff9b::127.0.0.1
    64:ff9b::808:808 64:ff9b:1::a9fe:a9fe 2002:7f00:1:: 2002:808:808::1 2001::1 2001:0:4136:e378:8000:63bf:80ff:fffe
    2606:4700::5efe:127.0.0.1 2606:4700::5efe:8.8.8.8 2606:4700::200:5efe:a00:1 fe80::5efe:10.0.0.1
""".split()
PUBLIC = [
    "8.8.8.8", "1.1.1.1", "9.255.255.255", "11.0.0.0", "100.63.255.255", "100.128.0.0", "172.15.255.255",
    "172.32.0.0", "192.0.1.0", "198.17.255.255", "198.20.0.0", "223.255.255.255", "2001:200::1",
    "2001:4860:4860::8888", "2606:4700:4700::1111", "2a00:1450:4001:81b::200e", "2606:4700::5efe",
]  # fmt: skip
INVALID_ADDRESSES = [
    "", "localhost", "example.com", "2130706433", "127.1", "0x7f.0.0.1", "0177.0.0.1", "8.8.8.08", "8.8.8.8 ",
    "8.8.8.8/32", "8.8.8.8\0", "٨.٨.٨.٨", "[::1]", "fe80::1%eth0", "2606:4700::1%eth0", "2606:4700::1%",
]  # fmt: skip


def test_public_addresses_are_allowed_and_all_others_are_refused() -> None:
    assert [address for address in PUBLIC if not is_public(address)] == []
    assert [address for address in PRIVATE_V4 + PRIVATE_V6 + V4_IN_V6 + INVALID_ADDRESSES if is_public(address)] == []


SECOND_OCTETS = (0, 64, 168, 254)


def test_no_address_that_python_calls_private_is_public() -> None:
    addresses = [f"{first}.{second}.{third}.1" for first in range(256) for second in SECOND_OCTETS for third in (0, 2)]
    addresses += [f"{first:x}::1" for first in range(0, 0x10000, 64)]
    mistakes = [address for address in addresses if is_public(address) and not ip_address(address).is_global]
    assert mistakes == []


@pytest.mark.parametrize(
    ("family", "address"), [(socket.AF_INET, "8.8.8.8"), (socket.AF_INET6, "2606:4700:4700::1111")]
)
def test_the_socket_of_a_public_address_does_not_block(family: int, address: str) -> None:
    addr_info = (family, socket.SOCK_STREAM, socket.IPPROTO_TCP, "", (address, 443))
    with closing(build_socket_factory(allow_private=False)(addr_info)) as connection:
        assert (connection.family, connection.type) == (family, socket.SOCK_STREAM)
        assert not connection.getblocking()


async def post(url: str, addresses: Iterable[str], allow_private: bool) -> None:
    """Posts to a host that a name server under the control of an attacker resolves to these addresses."""
    async with aclosing(Client(5, 1_000, allow_private, {})) as client:
        if addresses:
            port = urlsplit(url).port
            families = {address: socket.AF_INET6 if ":" in address else socket.AF_INET for address in addresses}
            resolve = AsyncMock(
                return_value=[
                    (family, socket.SOCK_STREAM, socket.IPPROTO_TCP, "", (address, port))
                    for address, family in families.items()
                ]
            )
            client.resolve = resolve  # type: ignore[method-assign]  # stands for the name server
        await client.request("POST", url)


PRIVATE_ROUTES = [
    ("127.0.0.1", []),
    ("[::1]", []),
    ("[::ffff:127.0.0.1]", []),
    ("example.com", ["127.0.0.1"]),
    ("example.com", ["127.0.0.1", "::1", "::ffff:127.0.0.1"]),
]


@pytest.mark.parametrize(("host", "addresses"), PRIVATE_ROUTES)
def test_no_name_leads_to_a_private_address(host: str, addresses: list[str]) -> None:
    with start_receiver(respond_with(200)) as receiver:
        url = receiver.url.replace("127.0.0.1", host)
        with pytest.raises(ForbiddenAddress):
            asyncio.run(post(url, addresses, allow_private=False))
    assert receiver.requests == []


def test_every_name_is_reached_if_private_addresses_are_allowed() -> None:
    with start_receiver(respond_with(200)) as receiver:
        # The first one does not answer.
        addresses = ["::1", "127.0.0.1"]
        asyncio.run(post(receiver.url.replace("127.0.0.1", "example.com"), addresses, allow_private=True))
    assert [request.headers["Host"] for request in receiver.requests] == [f"example.com:{receiver.server_port}"]
