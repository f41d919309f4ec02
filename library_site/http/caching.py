"""Keeps answers to a credential out of shared caches (RFC 9111, 5.2.2.7)."""

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from _typeshed.wsgi import StartResponse, WSGIApplication, WSGIEnvironment

# The headers of credentials, by their keys in the environ.
CREDENTIAL_HEADERS = {"HTTP_AUTHORIZATION": "Authorization", "HTTP_X_API_KEY": "X-API-Key"}


def mark_private(application: "WSGIApplication") -> "WSGIApplication":
    """Adds `Cache-Control: private`, unless there is a Cache-Control, and Vary to answers to a credential."""

    def wrapper(environ: "WSGIEnvironment", start_response: "StartResponse") -> Iterable[bytes]:
        if not has_credential(environ):
            return application(environ, start_response)
        names = [name for key, name in CREDENTIAL_HEADERS.items() if key in environ]

        def start_private_response(status: str, headers: list[tuple[str, str]], *arguments: Any) -> Any:
            has_cache_control = "cache-control" in [name.lower() for name, _ in headers]
            cache_control = [] if has_cache_control else [("Cache-Control", "private")]
            return start_response(status, [*headers, *cache_control, ("Vary", ", ".join(names))], *arguments)

        return application(environ, start_private_response)

    return wrapper


def has_credential(environ: "WSGIEnvironment") -> bool:
    """Whether the request shows a credential, good or bad. Written out, because every request passes here."""
    return "HTTP_AUTHORIZATION" in environ or "HTTP_X_API_KEY" in environ
