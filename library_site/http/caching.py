"""What caches may do with responses: they ask again for those of the API, and shared ones store none to a credential
(RFC 9111, 4.2.2, 5.2.2.4 and 5.2.2.7).
"""

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from library_site.http.request_log import Headers
from library_site.http.versions import API_ROOT

if TYPE_CHECKING:
    from _typeshed.wsgi import StartResponse, WSGIApplication, WSGIEnvironment

# Without it, caches may guess for how long a response is fresh, a 404 too.
API_CACHE_CONTROL = "no-cache"
# The headers of credentials, by their keys in the environ.
CREDENTIAL_HEADERS = {"HTTP_AUTHORIZATION": "Authorization", "HTTP_X_API_KEY": "X-API-Key"}
API_VARY = ", ".join(["Accept", *CREDENTIAL_HEADERS.values()])
# How the Cache-Control of a response to a request with a credential changes.
PRIVATE_FORMS = {"": "private", "no-cache": "private, no-cache"}


def set_caching(application: "WSGIApplication") -> "WSGIApplication":
    """Sets Cache-Control and Vary of the responses of the API, and of those to a request with a credential."""

    def wrapper(environ: "WSGIEnvironment", start_response: "StartResponse") -> Iterable[bytes]:
        is_api = environ["PATH_INFO"].startswith(f"{API_ROOT}/")
        names = [name for key, name in CREDENTIAL_HEADERS.items() if key in environ]
        if not is_api and not names:
            return application(environ, start_response)
        vary = API_VARY if is_api else ", ".join(names)

        def start_cached_response(status: str, headers: Headers, *arguments: Any) -> Any:
            own = ", ".join(value for name, value in headers if name.lower() == "cache-control")
            others = [(name, value) for name, value in headers if name.lower() != "cache-control"]
            caching = [("Cache-Control", build_cache_control(own, is_api, bool(names))), ("Vary", vary)]
            return start_response(status, [*others, *caching], *arguments)

        return application(environ, start_cached_response)

    return wrapper


def build_cache_control(own: str, is_api: bool, has_credential: bool) -> str:
    """Returns the Cache-Control of a response, whose view may have set its `own`, such as no-store."""
    cache_control = own or (API_CACHE_CONTROL if is_api else "")
    return PRIVATE_FORMS.get(cache_control, cache_control) if has_credential else cache_control
