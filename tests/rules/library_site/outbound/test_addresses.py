"""Which addresses a request may reach: checked at each connection, after the name was resolved."""

import asyncio
import socket
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager, closing
from ipaddress import ip_address

import aiohttp
import pytest
from aiohttp import abc, web

from library_site.outbound.addresses import ForbiddenAddress, is_public, make_socket_factory

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
    "8.8.8.8",
    "1.1.1.1",
    "9.255.255.255",
    "11.0.0.0",
    "100.63.255.255",
    "100.128.0.0",
    "172.15.255.255",
    "172.32.0.0",
    "192.0.1.0",
    "198.17.255.255",
    "198.20.0.0",
    "223.255.255.255",
    "2001:200::1",
    "2001:4860:4860::8888",
    "2606:4700:4700::1111",
    "2a00:1450:4001:81b::200e",
    "2606:4700::5efe",
]
INVALID_ADDRESSES = [
    "",
    "localhost",
    "example.com",
    "2130706433",
    "127.1",
    "0x7f.0.0.1",
    "0177.0.0.1",
    "8.8.8.08",
    "8.8.8.8 ",
    "8.8.8.8/32",
    "8.8.8.8\0",
    "٨.٨.٨.٨",
    "[::1]",
    "fe80::1%eth0",
    "2606:4700::1%eth0",
    "2606:4700::1%",
]


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
    with closing(make_socket_factory(allow_private=False)(addr_info)) as connection:
        assert (connection.family, connection.type) == (family, socket.SOCK_STREAM)
        assert not connection.getblocking()


class StaticResolver(abc.AbstractResolver):
    """A name server under the control of an attacker."""

    def __init__(self, addresses: Iterable[str]) -> None:
        self.addresses = addresses

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_UNSPEC
    ) -> list[abc.ResolveResult]:
        families = {address: socket.AF_INET6 if ":" in address else socket.AF_INET for address in self.addresses}
        return [
            abc.ResolveResult(hostname=host, host=address, port=port, family=family, proto=0, flags=0)
            for address, family in families.items()
        ]

    async def close(self) -> None:
        """Required by the base class; there is nothing to close."""


@asynccontextmanager
async def start_server(address: str, paths: list[str]) -> AsyncIterator[int]:
    async def record_path(request: web.Request) -> web.Response:
        paths.append(request.path)
        return web.Response()

    application = web.Application()
    application.router.add_post("/hook", record_path)
    runner = web.AppRunner(application)
    await runner.setup()
    try:
        await web.TCPSite(runner, address, 0).start()
        yield runner.addresses[0][1]
    finally:
        await runner.cleanup()


async def post(listener: str, host: str, responses: Iterable[str], allow_private: bool, paths: list[str]) -> None:
    """Posts to a server on `listener`, under a name that the name server resolves to `answers`."""
    async with start_server(listener, paths) as port:
        connector = aiohttp.TCPConnector(
            socket_factory=make_socket_factory(allow_private), resolver=StaticResolver(responses), force_close=True
        )
        async with (
            aiohttp.ClientSession(connector=connector) as session,
            session.post(f"http://{host}:{port}/hook"),
        ):
            pass


PRIVATE_ROUTES = [
    ("127.0.0.1", "127.0.0.1", []),
    ("::1", "[::1]", []),
    ("127.0.0.1", "[::ffff:127.0.0.1]", []),
    ("127.0.0.1", "example.com", ["127.0.0.1"]),
    ("127.0.0.1", "example.com", ["127.0.0.1", "::1", "::ffff:127.0.0.1"]),
]


@pytest.mark.parametrize(("listener", "host", "responses"), PRIVATE_ROUTES)
def test_no_name_leads_to_a_private_address(listener: str, host: str, responses: list[str]) -> None:
    paths: list[str] = []
    with pytest.raises(aiohttp.ClientConnectorError) as error:
        asyncio.run(post(listener, host, responses, allow_private=False, paths=paths))
    assert isinstance(error.value.os_error, ForbiddenAddress)
    assert paths == []


def test_every_name_is_reached_if_private_addresses_are_allowed() -> None:
    paths: list[str] = []
    asyncio.run(post("127.0.0.1", "example.com", ["127.0.0.1"], allow_private=True, paths=paths))
    assert paths == ["/hook"]
