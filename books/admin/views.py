"""Shared by all pages: addresses, permissions and rendering."""

from collections.abc import Callable, Mapping
from functools import wraps
from typing import Any

from django.contrib import admin, messages
from django.core.exceptions import PermissionDenied
from django.forms import BaseForm
from django.http import HttpRequest
from django.http.response import HttpResponseBase
from django.template.response import TemplateResponse
from django.urls import URLPattern, path
from django.utils.html import format_html
from django.utils.translation import gettext, gettext_lazy

from books.history.actors import ActorRef, get_or_create_actor
from books.models import Actor
from books.permissions import CHANGE_BOOK, OPERATION_ACTIONS, VIEW_BOOK
from books.writing.changes import BookNotFound, ConcurrentChange
from library_site.admin.site import has_any_permission
from library_site.http.api_errors import APIError

# What people read. The messages of the interface speak of requests.
REASONS: Mapping[type[APIError], Any] = {
    BookNotFound: gettext_lazy("The book is not there any more"),
    ConcurrentChange: gettext_lazy("Somebody else changed the book in the meantime"),
}
# Django shows the list of books to users with any of these permissions.
SEE_BOOKS = (VIEW_BOOK, CHANGE_BOOK)


def build_route(route: str, view: Callable[..., HttpResponseBase], name: str, *permissions: str) -> URLPattern:
    """Returns the URL pattern of a page, for admin users with any of these permissions.

    Without permissions, the view itself checks who may see the page.
    """

    @wraps(view)
    def checked_view(request: HttpRequest, *arguments: Any, **options: Any) -> HttpResponseBase:
        if permissions and not has_any_permission(request, permissions):
            raise PermissionDenied
        return view(request, *arguments, **options)

    return path(route, admin.site.admin_view(checked_view), name=name)


def render_page(request: HttpRequest, name: str, title: str, **context: Any) -> TemplateResponse:
    context = {**admin.site.each_context(request), "title": title, **context}
    return TemplateResponse(request, f"admin/books/{name}.html", context)


def find_librarian(request: HttpRequest, channel: Actor.Channel = Actor.Channel.ADMIN) -> ActorRef:
    """Returns the user as the actor of changes through this channel."""
    return get_or_create_actor(channel, user_id=request.user.pk)


def may_undo(request: HttpRequest) -> bool:
    return request.user.has_perms(OPERATION_ACTIONS["undo"])


def report_rejected(request: HttpRequest, error: APIError) -> None:
    reason = REASONS.get(type(error)) or gettext(error.default_detail)
    messages.error(request, gettext("Nothing was changed. %(reason)s.") % {"reason": reason})


def report_done(request: HttpRequest, text: str, undo_address: str = "") -> None:
    """Shows a message with a button that undoes. The page that shows it has the form of the button."""
    button = '<button form="message-form" formaction="{}" class="button small">{}</button>'
    undo = format_html(button, undo_address, gettext("Undo")) if undo_address else ""
    messages.success(request, format_html("{} {}", text, undo))


def focus_first(form: BaseForm) -> None:
    """Sets the focus on the first error, or on the first empty field, but not of a book that is there."""
    instance = getattr(form, "instance", None)
    names = [name for name in form.fields if name in form.errors]
    if not names and (instance is None or instance.pk is None):
        names = [name for name in form.fields if not form[name].value()]
    if names:
        form.fields[names[0]].widget.attrs["autofocus"] = True
