"""Identifies the caller of a request, for everything that is stored or counted per caller."""

import logging
from functools import cache
from ipaddress import IPv6Address, IPv6Network, ip_address
from typing import Any, cast

from django.conf import settings
from django.http import HttpRequest
from rest_framework.request import Request

from oauth.credentials import sha256_hex

log = logging.getLogger(__name__)


def get_caller_key(request: Request) -> str:
    """A stable name for the request's credential, else for its user, else for its address. It reveals no secret."""
    return sha256_hex(describe_caller(request))


def get_address_key(request: HttpRequest | Request) -> str:
    """A stable name for the address of a request, whatever its credential."""
    return sha256_hex(describe_address(request))


def describe_caller(request: Request) -> str:
    if request.auth is not None:
        return f"credential {request.auth}"
    if request.user is not None and request.user.is_authenticated:
        return f"user {request.user.pk}"
    return describe_address(request)


def describe_address(request: HttpRequest | Request) -> str:
    return f"address {get_client_network(get_client_address(request))}"


def get_client_address(request: HttpRequest | Request) -> str:
    """The address in X-Forwarded-For that the first of our own proxies (NUM_PROXIES) wrote; else the peer's.

    With fewer entries the request did not come through all proxies, so the client itself wrote them.
    """
    proxies = cast("int", settings.REST_FRAMEWORK["NUM_PROXIES"])
    entries = request.META.get("HTTP_X_FORWARDED_FOR", "").split(",")
    peer = request.META.get("REMOTE_ADDR") or ""
    if not proxies:
        return peer
    if len(entries) < proxies:
        report_missing_proxies(proxies)
        return peer
    address = entries[-proxies].strip()
    return address if is_address(address) else peer


@cache
def report_missing_proxies(proxies: int) -> None:
    """Logs once in each process: with too high a NUM_PROXIES callers can choose their own addresses."""
    log.warning("A request came through fewer proxies than NUM_PROXIES, which is %s. Are there so many?", proxies)


def is_address(text: str) -> bool:
    try:
        ip_address(text)
    except ValueError:
        return False
    return True


def is_anonymous(request: Request) -> bool:
    """Whether the caller is known by an address only, which different people may share."""
    return request.auth is None and (request.user is None or not request.user.is_authenticated)


def get_client_network(address: str) -> str:
    """An IPv4 address, or the /64 network of an IPv6 address: one client has all addresses of a /64 (RFC 6177)."""
    try:
        ipv6 = IPv6Address(address)
    except ValueError:
        return address
    # A server that listens on IPv6 sees all IPv4 clients in one /64.
    return str(ipv6.ipv4_mapped or IPv6Network((int(ipv6), 64), strict=False))


def get_client_ip(request: Any) -> str:
    """django-axes' AXES_CLIENT_IP_CALLABLE: an address, or the first of a network; `::` for an invalid address."""
    address = get_client_network(get_client_address(request)).partition("/")[0]
    return address if is_address(address) else "::"
