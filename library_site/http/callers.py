"""Identifies the caller of a request, for everything that is stored or counted per caller: by credential, user, or
network.
"""

import logging
from collections.abc import Mapping
from functools import cache
from hashlib import sha256
from ipaddress import IPv6Address, IPv6Network, ip_address
from typing import Any, cast

from django.conf import settings
from django.http import HttpRequest
from rest_framework.request import Request

log = logging.getLogger(__name__)


def get_caller_key(request: Request) -> str:
    """Returns a stable key of the request's credential, else of its user, else of its address. It reveals no secret."""
    if is_anonymous(request):
        return get_address_key(request)
    return hash_name(f"user {request.user.pk}" if request.auth is None else f"credential {request.auth}")


def get_address_key(request: HttpRequest | Request) -> str:
    """Returns a stable key of the address of a request, even if it has a credential."""
    return hash_name(f"address {get_client_network(request.META)}")


def is_anonymous(request: Request) -> bool:
    """Tells whether only the address of the caller is known, which several users can share."""
    return request.auth is None and (request.user is None or not request.user.is_authenticated)


def hash_name(name: str) -> str:
    return sha256(name.encode()).hexdigest()


def get_client_ip(request: Any) -> str:
    """django-axes' AXES_CLIENT_IP_CALLABLE: an address, or the first of a network; `::` for an invalid address."""
    address = get_client_network(request.META).partition("/")[0]
    return address if is_address(address) else "::"


def get_client_network(environ: Mapping[str, Any]) -> str:
    """Returns an IPv4 address, or the /64 network of an IPv6 address: one client has a whole /64 (RFC 6177)."""
    address = get_client_address(environ)
    try:
        ipv6 = IPv6Address(address) if ":" in address else None
    except ValueError:
        return address
    if not ipv6:
        return address
    # On a server that listens on IPv6, all IPv4 clients have addresses of one /64.
    return str(ipv6.ipv4_mapped or IPv6Network((int(ipv6), 64), strict=False))


def get_client_address(environ: Mapping[str, Any]) -> str:
    """Returns the address in X-Forwarded-For that the first of our proxies (NUM_PROXIES) added, or the peer's address.

    If there are fewer entries, the request did not pass all proxies, and the client may have written the entries.
    """
    peer = environ.get("REMOTE_ADDR") or ""
    proxies = cast("int", settings.REST_FRAMEWORK["NUM_PROXIES"])
    if not proxies:
        return peer
    entries = environ.get("HTTP_X_FORWARDED_FOR", "").split(",")
    if len(entries) < proxies:
        report_missing_proxies(proxies)
        return peer
    address = entries[-proxies].strip()
    return address if is_address(address) else peer


@cache
def report_missing_proxies(proxies: int) -> None:
    """Logs once in each process. If NUM_PROXIES is too high, callers can choose their own addresses."""
    log.warning("A request came through fewer proxies than NUM_PROXIES, which is %s. Are there so many?", proxies)


def is_address(text: str) -> bool:
    try:
        ip_address(text)
    except ValueError:
        return False
    return True
