"""Redirect URIs: which an app may register, which are meant by one that is asked for, where they lead a form."""

import re
from collections.abc import Iterable
from urllib.parse import urlsplit

from django.core.exceptions import ValidationError

# How many an app may have.
MAX_REDIRECT_URIS = 20
# What RFC 3986 knows, with a plain host: the consent page puts it into its Content-Security-Policy.
URI_PATTERN = re.compile(
    r"https?://([a-z0-9.-]+|\[[0-9a-f:.]+\])(:[0-9]+)?([/?][A-Za-z0-9._~:/?@!$&'()*+,;=%\[\]-]*)?", re.ASCII
)
# RFC 8252, 7.3: what is sent there stays on the person's own machine.
LOOPBACK_HOSTS = {"127.0.0.1", "::1", "localhost"}
# Its port is any (RFC 8252, 7.3); localhost may be another machine (8.3).
LOOPBACK_URI = re.compile(r"(http://(?:127\.0\.0\.1|\[::1\]))(?::[0-9]{1,5})?((?:[/?].*)?)")


def validate_redirect_uris(text: str) -> None:
    """Of a text with white space between them. Raises ValidationError."""
    uris = text.split()
    if not 1 <= len(uris) <= MAX_REDIRECT_URIS:
        raise ValidationError(f"There are 1 to {MAX_REDIRECT_URIS} redirect URIs.")
    if unfit := next((uri for uri in uris if not is_allowed_uri(uri)), None):
        words = (
            "A redirect URI is https, or http at 127.0.0.1, [::1] or localhost, without user or fragment; this is not:"
        )
        raise ValidationError(f"{words} {unfit}")


def is_allowed_uri(uri: str) -> bool:
    try:
        parts = urlsplit(uri)
        # Reading the port checks it, and those who compare redirect URIs later do not.
        parts.port  # noqa: B018
    except ValueError:
        return False
    return bool(URI_PATTERN.fullmatch(uri)) and (parts.scheme == "https" or parts.hostname in LOOPBACK_HOSTS)


def is_registered(uri: str, registered: Iterable[str]) -> bool:
    """To the letter (RFC 9700, 2.1), but for the port, which an app gets from its system each time."""
    return strip_loopback_port(uri) in map(strip_loopback_port, registered)


def strip_loopback_port(uri: str) -> str:
    found = LOOPBACK_URI.fullmatch(uri)
    return f"{found[1]}{found[2]}" if found else uri


def form_action_sources(redirect_uris: Iterable[str]) -> list[str]:
    """Where a form may lead that lets an app in, in the words of a Content-Security-Policy.

    Chromium holds every redirect after a form to form-action: the app's address, and where the app sends people on.
    Nobody knows the latter; so it is the web, and of the person's own machine the address that is registered.
    """
    uris = list(redirect_uris)
    return [*(["https:"] if uris else []), *(local_source(uri) for uri in uris if uri.startswith("http:"))]


def local_source(redirect_uri: str) -> str:
    """Any port of it. A policy cannot name IPv6 addresses (CSP 3, 2.3.1)."""
    hostname = urlsplit(redirect_uri).hostname or ""
    return "http:" if ":" in hostname else f"http://{hostname}:*"
