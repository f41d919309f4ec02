"""Restricts requests to public addresses, to protect the internal network (SSRF)."""

import socket
from collections.abc import Callable
from ipaddress import IPv6Address, IPv6Network, ip_address, ip_network
from typing import Any

# As getaddrinfo returns it: family, kind, protocol, canonical name, socket address.
AddrInfo = tuple[int, int, int, str, tuple[Any, ...]]

# IANA's registries of special-purpose addresses. Python's is_global changes between releases, and is true for multicast
# and for many IPv6 addresses that contain an IPv4 address.
PRIVATE_NETWORKS = tuple(
    map(
        ip_network,
        [
            "0.0.0.0/8",
            "10.0.0.0/8",
            "100.64.0.0/10",  # carriers' NAT, and internal in some clouds
            "127.0.0.0/8",
            "168.63.129.16/32",  # internal on every machine at Azure
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
            "2001::/23",  # includes Teredo
            "2001:db8::/32",
            "2002::/16",  # 6to4
            "3fff::/20",
        ],
    )
)
# All assigned unicast addresses of IPv6; mapped, compatible and translated IPv4 (64:ff9b::/96) are outside of it.
GLOBAL_UNICAST = IPv6Network("2000::/3")
# RFC 5214, 6.1: the third quarter of an address whose last quarter is IPv4, with or without the universal bit.
ISATAP_IDENTIFIERS = {0x0000_5EFE, 0x0200_5EFE}


class ForbiddenAddress(OSError):
    """The URL or address is not allowed.

    As an OSError it is a failed connection, after which the next address is tried. Of several errors `start_connection`
    keeps one only if all have the same message, so the message names no address.
    """


def is_public(address: str) -> bool:
    """Whether this is a public address: not private, not an IPv6 address that contains IPv4, and without a zone."""
    try:
        ip = ip_address(address)
    except ValueError:
        return False
    if any(ip in network for network in PRIVATE_NETWORKS):
        return False
    return ip.version == 4 or (ip in GLOBAL_UNICAST and "%" not in address and not is_isatap(ip))


def is_isatap(ip: IPv6Address) -> bool:
    return (int(ip) >> 32) % 2**32 in ISATAP_IDENTIFIERS


def build_socket_factory(allow_private: bool) -> Callable[[AddrInfo], socket.socket]:
    """For aiohappyeyeballs: checks each address after the name is resolved, just before it connects.

    Idle connections were checked when they were opened. The function raises ForbiddenAddress.
    """

    def open_socket(addr_info: AddrInfo) -> socket.socket:
        family, kind, protocol, _, (address, *_) = addr_info
        if not (allow_private or is_public(address)):
            # The same message for all addresses, so that it reveals nothing about the internal network.
            raise ForbiddenAddress("The address is not a public one.")
        new_socket = socket.socket(family, kind, protocol)
        new_socket.settimeout(0)
        return new_socket

    return open_socket
