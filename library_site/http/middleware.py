"""Middleware for the requests of programs, around the functions of the other modules: caches, version, body, address.

The compiled path calls the same functions.
"""

from collections.abc import Callable
from typing import Any

from django.conf import settings
from django.core.exceptions import MiddlewareNotUsed
from django.http import HttpRequest
from django.middleware.common import CommonMiddleware
from django.urls import is_valid_path

from library_site.http.api_errors import APIError, ErrorContent
from library_site.http.caching import set_caching
from library_site.http.error_pages import is_program_path
from library_site.http.errors import render_content
from library_site.http.request_log import VERSION_KEY
from library_site.http.transfer import compression
from library_site.http.transfer.bodies import get_body_limit, read_input
from library_site.http.versioning import API_PREFIX, accept_vendor_type, add_version_headers, choose_version
from library_site.http.versions import DEFAULT_VERSION, PROGRAM_PREFIXES, get_versions

GetResponse = Callable[[HttpRequest], Any]


class CompressionMiddleware:
    """Django's GZipMiddleware makes ETags weak, which If-Match never accepts, and compresses responses with secrets."""

    def __init__(self, get_response: GetResponse) -> None:
        if not settings.GZIP:
            raise MiddlewareNotUsed
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> Any:
        if not request.path_info.startswith(API_PREFIX):
            return self.get_response(request)
        conditions = compression.accept_compressed_etags(request.META)
        response = self.get_response(request)
        if compression.prepare_headers(request.META, response.status_code, response.headers, conditions):
            if response.streaming:
                response.streaming_content = compression.compress(response.streaming_content)
            else:
                response.content = b"".join(compression.compress([response.content]))
        return response


class VersionMiddleware:
    """Chooses the version of a request, and adds the headers of the version and those for caches to the response."""

    def __init__(self, get_response: GetResponse) -> None:
        self.get_response, self.versions = get_response, get_versions()
        self.latest = self.versions[max(self.versions)]

    def __call__(self, request: HttpRequest) -> Any:
        is_program = request.path_info.startswith(PROGRAM_PREFIXES)
        is_api = request.path_info.startswith(API_PREFIX)
        if is_api:
            request.META[VERSION_KEY] = choice = choose_version(request.META, self.versions, DEFAULT_VERSION)
            accept_vendor_type(request.META, choice.version)
        response = self.get_response(request)
        if is_program and not response.streaming and response.content:
            # Without it the server would send a chunked body.
            response["Content-Length"] = str(len(response.content))
        if is_api:
            add_version_headers(response.headers, choice, self.latest)
        set_caching(response.headers, request.META, is_api)
        return response


class BodyMiddleware:
    """Reads the body of a request, before anything answers it: so the client keeps its connection."""

    def __init__(self, get_response: GetResponse) -> None:
        self.get_response = get_response

    def __call__(self, request: Any) -> Any:
        # Another middleware has read it already.
        if request.method not in ("POST", "PUT", "PATCH") or request._read_started:
            return self.get_response(request)
        # An ASGI server has. REST framework reads no body without a length.
        if "wsgi.input" not in request.META:
            request.META.setdefault("CONTENT_LENGTH", str(len(request.body)))
            return self.get_response(request)
        limit = get_body_limit(request.META)
        try:
            request._stream = read_input(request.META, limit)
        except APIError as refusal:
            # Raised, it would be a page of Django's with status 500 while DEBUG is on, and an error in the log.
            return render_content(request, refusal.get_content(request))
        size = request._stream.getbuffer().nbytes
        if size < int(request.META["CONTENT_LENGTH"]) <= limit:
            return render_content(request, ErrorContent(400, "The body was cut off."))
        if size > limit and not is_program_path(request.path_info):
            # Django would leave out the last file of a form that is cut off.
            return render_content(request, ErrorContent(413, "The body is too large"))
        if size <= limit:
            # As Django's own `request.body` does, which refuses to read a body over its limit.
            request._body = request._stream.getvalue()
        return self.get_response(request)


class AddressMiddleware(CommonMiddleware):
    """Does for programs what CommonMiddleware does for pages: checks Host against ALLOWED_HOSTS (otherwise a web page
    could reach a local library by DNS rebinding), and gives the request its address in its version.

    A slash at the end is ignored, unless the address has one, as those of a router: without it Django redirects there.
    """

    def __call__(self, request: HttpRequest) -> Any:
        is_program = request.path_info.startswith(PROGRAM_PREFIXES)
        if is_program:
            request.get_host()
            choice = request.META.get(VERSION_KEY)
            path = choice.version.home + choice.path if choice else request.path_info
            # The root itself, such as /api/, stays an address for programs.
            shorter_path = path.removesuffix("/")
            if path.endswith("/") and shorter_path.startswith(PROGRAM_PREFIXES) and not is_valid_path(path):
                path = shorter_path
            move_request(request, path)
            if choice and choice.query != request.META.get("QUERY_STRING", ""):
                request.META["QUERY_STRING"] = choice.query
                # Middleware of others may have read it.
                vars(request).pop("GET", None)
        response: Any = self.get_response(request)
        if is_program and response.status_code == 404 and self.should_redirect_with_slash(request):
            return self.response_redirect_class(self.get_full_path_with_slash(request))
        return response


def move_request(request: HttpRequest, path: str) -> None:
    """Gives a request another path, as WSGIRequest does."""
    request.path = request.path.removesuffix(request.path_info) + path
    request.path_info = request.META["PATH_INFO"] = path
