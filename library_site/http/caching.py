"""Keeps responses to requests with a credential out of shared caches (RFC 9111, 5.2.2.7)."""

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from library_site.http.request_log import Headers

if TYPE_CHECKING:
    from _typeshed.wsgi import StartResponse, WSGIApplication, WSGIEnvironment

# The headers of credentials, by their keys in the environ.
CREDENTIAL_HEADERS = {"HTTP_AUTHORIZATION": "Authorization", "HTTP_X_API_KEY": "X-API-Key"}
# How the Cache-Control of a response to a request with a credential changes.
PRIVATE_FORMS = {"": "private", "no-cache": "private, no-cache"}


def mark_private(application: "WSGIApplication") -> "WSGIApplication":
    """Adds Vary, and `private` in Cache-Control unless it is stricter, if the request has a credential."""

    def wrapper(environ: "WSGIEnvironment", start_response: "StartResponse") -> Iterable[bytes]:
        if not has_credential(environ):
            return application(environ, start_response)
        names = [name for key, name in CREDENTIAL_HEADERS.items() if key in environ]

        def start_private_response(status: str, headers: Headers, *arguments: Any) -> Any:
            cache_control = ", ".join(value for name, value in headers if name.lower() == "cache-control")
            others = [(name, value) for name, value in headers if name.lower() != "cache-control"]
            private = [("Cache-Control", PRIVATE_FORMS.get(cache_control, cache_control)), ("Vary", ", ".join(names))]
            return start_response(status, [*others, *private], *arguments)

        return application(environ, start_private_response)

    return wrapper


def has_credential(environ: "WSGIEnvironment") -> bool:
    """Tells whether the request has a credential, valid or not. It has no loop, because it runs for every request."""
    return "HTTP_AUTHORIZATION" in environ or "HTTP_X_API_KEY" in environ
