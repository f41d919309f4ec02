"""Who sends a request, for all that is kept per caller."""

from ipaddress import IPv6Address, IPv6Network
from ipaddress import ip_address as parsed_address
from typing import Any

from rest_framework.request import Request
from rest_framework.throttling import BaseThrottle

from oauth.credentials import sha256_hex


def caller_key(request: Request) -> str:
    """A stable name for the request's credential, else its user, else its address; no secret can be read from it."""
    return sha256_hex(describe_caller(request))


def describe_caller(request: Request) -> str:
    if request.auth is not None:
        return f"credential {request.auth}"
    if request.user is not None and request.user.is_authenticated:
        return f"user {request.user.pk}"
    return f"address {client_network(BaseThrottle().get_ident(request))}"


def client_network(address: str) -> str:
    """The address, or of an IPv6 one its /64: whoever has one address of it has them all (RFC 6177)."""
    try:
        parsed = IPv6Address(address)
    except ValueError:
        return address
    # A server that listens on IPv6 sees IPv4 clients under one and the same /64.
    return str(parsed.ipv4_mapped or IPv6Network((int(parsed), 64), strict=False))


def get_client_ip(request: Any) -> str:
    """The address of `client` as django-axes keeps it; what a proxy calls an address and is none counts as one."""
    found = client_network(BaseThrottle().get_ident(request) or "").partition("/")[0]
    try:
        return str(parsed_address(found))
    except ValueError:
        return "::"
