"""The language and the time zone of pages for people. Responses to programs are in English, with times in UTC."""

import re
from collections.abc import Callable
from datetime import datetime
from functools import cache
from zoneinfo import ZoneInfo, available_timezones

from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.utils import timezone, translation
from django.utils.cache import patch_vary_headers

from library_site.http.error_pages import HTML, is_program_path

# The script `time-zone.js` sets it.
ZONE_COOKIE = "time_zone"
# Programs use the root, and the documentation shows texts of the API, which are in English.
is_documentation_path = re.compile(r"/(docs(?![\w-])|$)").match


def localize_pages(get_response: Callable[[HttpRequest], HttpResponse]) -> Callable[[HttpRequest], HttpResponse]:
    """Renders a page in the user's language, with times in the user's zone.

    Django's LocaleMiddleware keeps the language active for the thread's next request, which can be one of a program.
    """

    def wrapper(request: HttpRequest) -> HttpResponse:
        if is_program_path(request.path_info) or is_documentation_path(request.path_info):
            return get_response(request)
        try:
            # The cookie's, or else the one that the browser prefers (RFC 9110, 12.5.4).
            translation.activate(translation.get_language_from_request(request))
            zone = request.COOKIES.get(ZONE_COOKIE, "")
            timezone.activate(ReaderZone(zone) if zone in list_zones() else timezone.get_default_timezone())
            return finish_response(request, get_response(request))
        finally:
            translation.deactivate()
            timezone.deactivate()

    return wrapper


class ReaderZone(ZoneInfo):
    """A time zone that returns times at the ends of the calendar in UTC, instead of raising OverflowError.

    Programs can store such times, for example for keys that never expire.
    """

    def fromutc(self, dt: datetime, /) -> datetime:
        try:
            return super().fromutc(dt)
        except OverflowError:
            return dt


@cache
def list_zones() -> frozenset[str]:
    """Returns the names in the IANA's database. They are cached: to list the files takes milliseconds."""
    return frozenset(available_timezones())


def finish_response(request: HttpRequest, response: HttpResponse) -> HttpResponse:
    if response.get("Content-Type", "").startswith(HTML):
        response.headers.setdefault("Content-Language", translation.get_language())
        patch_vary_headers(response, ["Accept-Language", "Cookie"])
    if language := request.META.get("library.language"):
        response.set_cookie(
            settings.LANGUAGE_COOKIE_NAME,
            language,
            max_age=settings.LANGUAGE_COOKIE_AGE,
            secure=settings.LANGUAGE_COOKIE_SECURE,
            httponly=True,
            samesite="Lax",
        )
    return response


def choose_language(request: HttpRequest, language: str) -> None:
    """Lets the response to this request set the browser's language."""
    if language in dict(settings.LANGUAGES):
        request.META["library.language"] = language
