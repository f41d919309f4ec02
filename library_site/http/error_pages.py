"""Error pages for browsers. Programs get JSON, as does every client of an address for programs."""

import re
from typing import Any, NamedTuple

from django.http import HttpRequest, HttpResponse
from django.template.loader import render_to_string
from django.utils.translation import gettext_lazy as _
from rest_framework.request import Request

from library_site.http.api_errors import ErrorContent
from library_site.http.request_log import current_request_id

JSON, HTML = "application/json", "text/html"
# At these addresses the Accept header is ignored, because some programs send that of a browser.
is_program_path = re.compile(r"/(api|webhooks|openapi|\.well-known|oauth(?!/authorize/?$))(?![\w-])").match


class Explanation(NamedTuple):
    """The text of an error page: the error, and what the user can do."""

    title: Any
    advice: Any
    shows_message: bool = False


EXPLANATIONS = {
    400: Explanation(
        _("The library cannot read this request"),
        _("Go back and try again. The library answered:"),
        shows_message=True,
    ),
    403: Explanation(
        _("You may not do this"),
        _("Your account has no permission for it. Whoever manages the accounts of the library can give it to you."),
    ),
    404: Explanation(_("There is no such page"), _("The address has a mistake, or what it showed was deleted.")),
    405: Explanation(_("This page cannot do that"), _("Go back and try again.")),
    409: Explanation(
        _("Nothing was changed"),
        _("Go back, and look at what is there now. The library answered:"),
        shows_message=True,
    ),
    413: Explanation(_("That is too much at once"), _("Nothing was changed. Go back, and send less.")),
    429: Explanation(_("Too many requests"), _("Nothing was changed. Wait a moment, then try again.")),
    500: Explanation(
        _("The library failed"), _("This is a fault of the library. Tell those who run it the number of this request.")
    ),
    503: Explanation(_("The library is out of reach"), _("Nothing was changed. Wait a moment, then try again.")),
}
# Errors that may be temporary, so that a retry makes sense.
TEMPORARY_STATUSES = (429, 500, 503)


def prefers_page(request: HttpRequest | Request) -> bool:
    """Tells whether to render an HTML page: browsers accept HTML, programs accept JSON or any type."""
    return not is_program_path(request.path_info) and request.get_preferred_type([JSON, HTML]) == HTML


def render_error_page(
    request: HttpRequest | Request, content: ErrorContent, explanation: Explanation | None = None
) -> HttpResponse:
    """Renders without the session and the database, which can be the cause of the error. Only permissions need them."""
    explanation = explanation or EXPLANATIONS.get(content.status, EXPLANATIONS[400])
    can_repeat = content.status in TEMPORARY_STATUSES and request.method == "GET"
    context = {
        "explanation": explanation,
        "message": content.message if explanation.shows_message else "",
        "request_id": current_request_id.get() if content.status == 500 else "",
        "repeated_address": request.get_full_path() if can_repeat else "",
    }
    known_request = request if content.status == 403 and hasattr(request, "user") else None
    return HttpResponse(render_to_string("error.html", context, known_request), status=content.status)
