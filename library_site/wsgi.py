"""The WSGI application, and what stands before Django."""

import gc
import os
import re
from collections.abc import Iterable
from io import BytesIO
from typing import TYPE_CHECKING
from urllib.parse import quote

from django.conf import settings
from django.core.handlers.wsgi import WSGIHandler, WSGIRequest
from django.core.wsgi import get_wsgi_application
from django.http import HttpRequest, HttpResponse
from django.http.response import HttpResponseBase

from library_site.http.access_log import recorded
from library_site.http.request_id import identified
from library_site.http.versioning import ROOT, versioned

if TYPE_CHECKING:
    from _typeshed.wsgi import InputStream, StartResponse, WSGIApplication, WSGIEnvironment

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "library_site.settings")

# What programs ask for; all else is pages.
PROGRAMS = (f"{ROOT}/", "/webhooks/")
# What a query may hold as it is (RFC 3986, 3.4).
QUERY = "/?:@!$&'()*+,;=%"
BROWSERS_FORM = re.compile(r"multipart/form-data; ?boundary=[\w'()+,./:=?-]+")


class APIRequest(WSGIRequest):
    def get_full_path(self, force_append_slash: bool = False) -> str:
        """The address as it was asked for: a redirect to HTTPS must lead there, not where the version is at home."""
        path, query = self.META["library.asked_for"]
        return quote(path, encoding="latin-1") + (f"?{quote(query, QUERY, 'latin-1')}" if query else "")


class APIHandler(WSGIHandler):
    """Django's handler with API_MIDDLEWARE alone: programs do not wait for what pages need."""

    request_class = APIRequest

    def load_middleware(self, is_async: bool = False) -> None:
        # Django's loader knows one list.
        whole, settings.MIDDLEWARE = settings.MIDDLEWARE, settings.API_MIDDLEWARE
        try:
            super().load_middleware(is_async)
        finally:
            settings.MIDDLEWARE = whole

    def get_response(self, request: HttpRequest) -> HttpResponseBase:
        """Sets Content-Length; without it the answer would be chunked."""
        response = super().get_response(request)
        if isinstance(response, HttpResponse) and response.content:
            response["Content-Length"] = len(response.content)
        return response


def switch(api: "WSGIApplication", pages: "WSGIApplication") -> "WSGIApplication":
    """Programs go one way, people the other. A slash at the end of a program's address is passed over."""

    def chosen(environ: "WSGIEnvironment", start_response: "StartResponse") -> Iterable[bytes]:
        path = environ["PATH_INFO"]
        if not path.startswith(PROGRAMS):
            return pages(environ, start_response)
        # Versions have set it for their own addresses.
        environ.setdefault("library.asked_for", (path, environ.get("QUERY_STRING", "")))
        environ["PATH_INFO"] = path.removesuffix("/")
        return api(environ, start_response)

    return chosen


def plainly_typed(application: "WSGIApplication") -> "WSGIApplication":
    """Leaves the media type alone of a Content-Type: of strange parameters Django fails before it can answer."""

    def stripped(environ: "WSGIEnvironment", start_response: "StartResponse") -> Iterable[bytes]:
        given = environ.get("CONTENT_TYPE")
        if given and not BROWSERS_FORM.fullmatch(given):
            environ["CONTENT_TYPE"] = given.partition(";")[0].strip() or "unknown"
        return application(environ, start_response)

    return stripped


def read_whole(application: "WSGIApplication") -> "WSGIApplication":
    """Reads a body before Django sees the request.

    One without a length (chunked, or of HTTP/2) gets the one that Django goes by; one that Django refuses unread does
    not cost the client its connection; one that was cut off on its way is marked, lest it be taken for the whole.
    """

    def reading(environ: "WSGIEnvironment", start_response: "StartResponse") -> Iterable[bytes]:
        # Django takes a method in any case.
        environ["REQUEST_METHOD"] = environ["REQUEST_METHOD"].upper()
        if environ["REQUEST_METHOD"] in ("POST", "PUT", "PATCH"):
            limit = environ.setdefault("library.body_limit", settings.DATA_UPLOAD_MAX_MEMORY_SIZE)
            # One byte over the limit is enough to see that it is over.
            body = environ["wsgi.input"].read(limit + 1)
            if len(body) > limit:
                drain(environ["wsgi.input"])
            length = environ.get("CONTENT_LENGTH") or str(len(body))
            environ |= {"wsgi.input": BytesIO(body), "CONTENT_LENGTH": length}
            environ["library.cut_off"] = len(body) < int(length) <= limit
        return application(environ, start_response)

    return reading


def drain(body: "InputStream") -> None:
    """Reads on for 64 MiB: a client that is still sending would miss the answer."""
    for _ in range(64):
        if not body.read(1024 * 1024):
            break


def layered(api: "WSGIApplication", pages: "WSGIApplication") -> "WSGIApplication":
    """The whole, from the outermost layer to the two handlers."""
    # Needs Django set up.
    from books.urls import questions
    from library_site.http.fast_path import front
    from library_site.urls import UNNAMED, VERSIONS

    handled = read_whole(plainly_typed(switch(api, pages)))
    if settings.COMPILED_PATH:
        handled = front(handled, questions)
    return identified(recorded(versioned(handled, VERSIONS, UNNAMED)))


# First: it sets Django up.
pages_handler = get_wsgi_application()
application = layered(APIHandler(), pages_handler)
# What was imported is no garbage: looking through it again and again is a twentieth of what a change takes.
gc.freeze()
gc.set_threshold(20_000)
