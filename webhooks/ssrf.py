"""Checks the URLs of receivers: the worker must send no requests into our internal network (SSRF)."""

import re
from ipaddress import ip_address

from django.utils.translation import gettext_noop

from library_site.outbound.addresses import ForbiddenAddress, is_public

MIN_URL_LENGTH, MAX_URL_LENGTH = len("http://a"), 2_000
MAX_HOST_LENGTH = 253
HOST_LABEL = r"[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?"
# A host that all URL parsers understand in the same way, then printable characters but no backslash or fragment.
URL_PATTERN = re.compile(
    rf"(?P<scheme>https?)://(?P<host>{HOST_LABEL}(?:\.{HOST_LABEL})*|\[[0-9a-f.]*:[0-9a-f:.]*\])"
    r'(?::(?P<port>[1-9][0-9]{0,4}))?(?:[/?][!"$-\[\]-~]*)?'
)
# Brackets, or a number at the end: some resolvers take 2130706433, 0x7f.1 and 127.1 for 127.0.0.1.
IP_LITERAL = re.compile(r"\[.*\]|(?:.*\.)?(?:[0-9]+|0x[0-9a-f]*)")
# RFC 6761, RFC 6762, RFC 8375, and the name that ICANN reserves for private use.
PRIVATE_SUFFIXES = (".localhost", ".local", ".internal", ".home.arpa")

INVALID_URL_MESSAGE = gettext_noop(
    "A receiver's URL has https, a plain host in small letters, no user and no fragment, and is at most %(count)s"
    " printable ASCII characters."
) % {"count": MAX_URL_LENGTH}
# One message for all addresses: the response reveals nothing about the internal network.
NOT_PUBLIC_MESSAGE = gettext_noop(
    "A receiver is on the public internet and has https. The operator's setting WEBHOOKS_ALLOW_PRIVATE=true"
    " allows others, for example on one's own machine."
)


def validate_url(url: str, allow_private: bool) -> None:
    """Checks the URL of a receiver. Raises ForbiddenAddress with a message for the user.

    Names are not resolved: the socket factory checks the addresses when a request is sent.
    """
    match = URL_PATTERN.fullmatch(url) if len(url) <= MAX_URL_LENGTH else None
    if not match or len(match["host"]) > MAX_HOST_LENGTH or int(match["port"] or 443) > 65535:
        raise ForbiddenAddress(INVALID_URL_MESSAGE)
    host = match["host"]
    is_public_host = is_public_literal(host) if IP_LITERAL.fullmatch(host) else is_public_name(host)
    if not allow_private and (match["scheme"] == "http" or not is_public_host):
        raise ForbiddenAddress(NOT_PUBLIC_MESSAGE)


def is_public_literal(host: str) -> bool:
    """Raises ForbiddenAddress for a literal that URL parsers understand differently."""
    address = host.strip("[]")
    try:
        ip_address(address)
    except ValueError:
        raise ForbiddenAddress(INVALID_URL_MESSAGE) from None
    return is_public(address)


def is_public_name(name: str) -> bool:
    return "." in name and not f".{name}".endswith(PRIVATE_SUFFIXES)
