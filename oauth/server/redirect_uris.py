"""Rules for redirect URIs: which can be registered, which ones match, and their form-action sources."""

import re
from collections.abc import Iterable, Mapping
from urllib.parse import urlencode, urlsplit

from django.core.exceptions import ValidationError
from django.utils.translation import gettext_lazy as _

# Per app.
MAX_REDIRECT_URIS = 20
# The characters of RFC 3986, with a plain host: the URI becomes part of a Content-Security-Policy.
URI_PATTERN = re.compile(
    r"https?://([a-z0-9.-]+|\[[0-9a-f:.]+\])(:[0-9]+)?([/?][A-Za-z0-9._~:/?@!$&'()*+,;=%\[\]-]*)?", re.ASCII
)
# RFC 8252, 7.3: a redirect to these hosts stays on the user's machine.
LOOPBACK_HOSTS = {"127.0.0.1", "::1", "localhost"}
# Any port matches (RFC 8252, 7.3), except for localhost, which can be another machine (8.3).
LOOPBACK_URI = re.compile(r"(http://(?:127\.0\.0\.1|\[::1\]))(?::[0-9]{1,5})?((?:[/?].*)?)")


def validate_redirect_uris(text: str) -> None:
    """Checks redirect URIs separated by white space. Raises ValidationError."""
    uris = text.split()
    if not 1 <= len(uris) <= MAX_REDIRECT_URIS:
        raise ValidationError(_("There are 1 to %(count)d redirect URIs."), params={"count": MAX_REDIRECT_URIS})
    if invalid_uri := next((uri for uri in uris if not is_allowed_uri(uri)), None):
        message = _(
            "A redirect URI is https, or http at 127.0.0.1, [::1] or localhost, without user or fragment; this is not:"
            " %(uri)s"
        )
        raise ValidationError(message, params={"uri": invalid_uri})


def is_allowed_uri(uri: str) -> bool:
    try:
        parts = urlsplit(uri)
        # Reading the port raises ValueError if it is invalid; later comparisons do not check it.
        parts.port  # noqa: B018
    except ValueError:
        return False
    return bool(URI_PATTERN.fullmatch(uri)) and (parts.scheme == "https" or parts.hostname in LOOPBACK_HOSTS)


def is_registered(uri: str, registered_uris: Iterable[str]) -> bool:
    """Compares exactly (RFC 9700, 2.1), except for a loopback port: the operating system chooses it each time."""
    return strip_loopback_port(uri) in map(strip_loopback_port, registered_uris)


def strip_loopback_port(uri: str) -> str:
    match = LOOPBACK_URI.fullmatch(uri)
    return f"{match[1]}{match[2]}" if match else uri


def add_parameters(uri: str, parameters: Mapping[str, str]) -> str:
    """Appends to the query. What is there stays as the app registered it: some apps compare it byte for byte."""
    return f"{uri}{'&' if '?' in uri else '?'}{urlencode(parameters)}"


def list_form_action_sources(redirect_uris: Iterable[str]) -> list[str]:
    """Returns the form-action sources of a Content-Security-Policy for the consent form.

    Chromium checks every redirect after a form against form-action: to the app, and from the app to other pages. The
    other pages are unknown, so all of https is allowed; on the user's machine only the registered address.
    """
    uris = list(redirect_uris)
    return [*(["https:"] if uris else []), *(get_local_source(uri) for uri in uris if uri.startswith("http:"))]


def get_local_source(redirect_uri: str) -> str:
    """The URI's host with any port. A policy cannot contain IPv6 addresses (CSP 3, 2.3.1): they allow all of http."""
    hostname = urlsplit(redirect_uri).hostname or ""
    return "http:" if ":" in hostname else f"http://{hostname}:*"
