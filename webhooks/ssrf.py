"""Where receivers may be: on the public internet, so that nobody reaches through us what is inside."""

import re
import socket
from collections.abc import Callable
from ipaddress import IPv6Address, IPv6Network, ip_address, ip_network
from typing import Any

# As getaddrinfo answers and aiohttp hands on: family, kind, protocol, canonical name, socket address.
AddrInfo = tuple[int, int, int, str, tuple[Any, ...]]

# IANA's registries of special-purpose addresses. Python's is_global changes between its releases, and calls multicast
# global and many an IPv6 address that is an IPv4 address in disguise.
PRIVATE_NETWORKS = tuple(
    map(
        ip_network,
        [
            "0.0.0.0/8",
            "10.0.0.0/8",
            "100.64.0.0/10",  # carriers' NAT, and inside of some clouds
            "127.0.0.0/8",
            "168.63.129.16/32",  # inside of every machine at Azure
            "169.254.0.0/16",
            "172.16.0.0/12",
            "192.0.0.0/24",
            "192.0.2.0/24",
            "192.88.99.0/24",
            "192.168.0.0/16",
            "198.18.0.0/15",
            "198.51.100.0/24",
            "203.0.113.0/24",
            "224.0.0.0/4",
            "240.0.0.0/4",
            "2001::/23",  # Teredo among them
            "2001:db8::/32",
            "2002::/16",  # 6to4
            "3fff::/20",
        ],
    )
)
# All that is given out of IPv6; mapped, compatible and translated IPv4 (64:ff9b::/96) are outside of it.
GLOBAL_UNICAST = IPv6Network("2000::/3")
# RFC 5214, 6.1: what the third quarter of an address says when the last is IPv4, with or without the universal bit.
ISATAP_IDENTIFIERS = {0x0000_5EFE, 0x0200_5EFE}

MAX_URL_LENGTH = 2_000
MAX_HOST_LENGTH = 253
HOST_LABEL = r"[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?"
# A host that every parser reads alike; after it what is printable, but neither backslash nor fragment.
URL_PATTERN = re.compile(
    rf"(?P<scheme>https?)://(?P<host>{HOST_LABEL}(?:\.{HOST_LABEL})*|\[[0-9a-f.]*:[0-9a-f:.]*\])"
    r'(?::(?P<port>[1-9][0-9]{0,4}))?(?:[/?][!"$-\[\]-~]*)?'
)
# Brackets, or a number at the end: to some resolver 2130706433, 0x7f.1 and 127.1 are all 127.0.0.1.
IP_LITERAL = re.compile(r"\[.*\]|(?:.*\.)?(?:[0-9]+|0x[0-9a-f]*)")
# RFC 6761, RFC 6762, RFC 8375, and what ICANN keeps for private use.
PRIVATE_SUFFIXES = (".localhost", ".local", ".internal", ".home.arpa")

INVALID_URL_MESSAGE = (
    "A receiver's URL has https, a plain host in small letters, no user and no fragment,"
    f" and is at most {MAX_URL_LENGTH} printable ASCII characters."
)
# The same for all of them: who asks learns nothing about what is there.
NOT_PUBLIC_MESSAGE = "A receiver is on the public internet."


class ForbiddenAddress(OSError):
    """As an OSError it is to aiohttp a connection that failed: os_error of its ClientConnectorError.

    Of several errors in one attempt aiohttp keeps one only if all say the same; so the words name no address.
    """


def validate_url(url: str, allow_private: bool) -> None:
    """Of a receiver that is registered. Raises RefusedAddress, with words for whoever asked.

    No name is looked up: what it leads to later is the socket factory's to see.
    """
    written = URL_PATTERN.fullmatch(url) if len(url) <= MAX_URL_LENGTH else None
    if (
        not written
        or len(written["host"]) > MAX_HOST_LENGTH
        or int(written["port"] or 443) > 65535
        or (written["scheme"] == "http" and not allow_private)
    ):
        raise ForbiddenAddress(INVALID_URL_MESSAGE)
    outside = (
        is_public_literal(written["host"]) if IP_LITERAL.fullmatch(written["host"]) else is_public_name(written["host"])
    )
    if not (outside or allow_private):
        raise ForbiddenAddress(NOT_PUBLIC_MESSAGE)


def is_public_literal(host: str) -> bool:
    """Raises RefusedAddress of one that is not written as everybody reads it."""
    address = host.strip("[]")
    try:
        ip_address(address)
    except ValueError:
        raise ForbiddenAddress(INVALID_URL_MESSAGE) from None
    return is_public(address)


def is_public_name(name: str) -> bool:
    return "." in name and not f".{name}".endswith(PRIVATE_SUFFIXES)


def is_public(address: str) -> bool:
    """Neither inside nor an IPv6 address that holds an IPv4 one. What is no address, or has a zone, is not public."""
    try:
        ip = ip_address(address)
    except ValueError:
        return False
    if any(ip in network for network in PRIVATE_NETWORKS):
        return False
    return ip.version == 4 or (ip in GLOBAL_UNICAST and "%" not in address and not is_isatap(ip))


def is_isatap(ip: IPv6Address) -> bool:
    return (int(ip) >> 32) % 2**32 in ISATAP_IDENTIFIERS


def make_socket_factory(allow_private: bool) -> Callable[[AddrInfo], socket.socket]:
    """For aiohttp's TCPConnector: it sees each address that is dialled, whatever a name meant a moment before.

    Through a proxy it would see the proxy's; and what the connector's pool holds was dialled under this guard.
    """

    def guarded_socket(addr_info: AddrInfo) -> socket.socket:
        family, kind, protocol, _, (address, *_) = addr_info
        if not (allow_private or is_public(address)):
            raise ForbiddenAddress(NOT_PUBLIC_MESSAGE)
        dialling = socket.socket(family, kind, protocol)
        dialling.settimeout(0)
        return dialling

    return guarded_socket
