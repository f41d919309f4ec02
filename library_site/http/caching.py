"""What caches may do with responses: they ask again for those of the API, and shared ones store none to a credential
(RFC 9111, 4.2.2, 5.2.2.4 and 5.2.2.7).
"""

from collections.abc import Iterable, Mapping, MutableMapping
from typing import Any

# Without it, caches may guess for how long a response is fresh, a 404 too.
API_CACHE_CONTROL = "no-cache"
# The headers of credentials, by their keys in the environ.
CREDENTIAL_HEADERS = {"HTTP_AUTHORIZATION": "Authorization", "HTTP_X_API_KEY": "X-API-Key"}
API_VARY = ("Accept", *CREDENTIAL_HEADERS.values())
# How the Cache-Control of a response to a request with a credential changes.
PRIVATE_FORMS = {"": "private", "no-cache": "private, no-cache"}


def set_caching(headers: MutableMapping[str, str], environ: Mapping[str, Any], is_api: bool) -> None:
    """Sets Cache-Control and Vary of the responses of the API, and of those to a request with a credential."""
    names = [name for key, name in CREDENTIAL_HEADERS.items() if key in environ]
    if is_api or names:
        # A view may have set its own, such as no-store.
        own = headers.get("Cache-Control") or (API_CACHE_CONTROL if is_api else "")
        headers["Cache-Control"] = PRIVATE_FORMS.get(own, own) if names else own
        add_vary(headers, API_VARY if is_api else names)


def add_vary(headers: MutableMapping[str, str], names: Iterable[str]) -> None:
    """Is Django's `patch_vary_headers` for headers alone."""
    own = headers.get("Vary", "")
    known = own.lower().replace(" ", "").split(",")
    headers["Vary"] = ", ".join([*([own] if own else []), *(name for name in names if name.lower() not in known)])
