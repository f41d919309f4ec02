"""Identifies the caller of a request, for everything that is stored or counted per caller."""

from hashlib import sha256
from typing import Any

from django.http import HttpRequest
from rest_framework.request import Request

from library_site.http.client_addresses import get_client_network, is_address


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
