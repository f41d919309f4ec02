"""Where a form may lead that lets an app in, in the words of a Content-Security-Policy."""

from collections.abc import Iterable
from urllib.parse import urlsplit


def sources(redirect_uris: Iterable[str]) -> list[str]:
    """Chromium holds every redirect after a form to form-action: the app's address, and where the app sends people on.

    Nobody knows the latter; so it is the web, and of the person's own machine the address that is registered.
    """
    uris = list(redirect_uris)
    return [*(["https:"] if uris else []), *(local(uri) for uri in uris if uri.startswith("http:"))]


def local(redirect_uri: str) -> str:
    """Any port of it (RFC 8252, 7.3). A policy cannot name IPv6 addresses (CSP 3, 2.3.1)."""
    hostname = urlsplit(redirect_uri).hostname or ""
    return "http:" if ":" in hostname else f"http://{hostname}:*"
