"""Shared by all pages: addresses, permissions and rendering."""

from collections.abc import Callable, Iterable
from functools import wraps
from typing import Any

from django.contrib import admin
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest
from django.http.response import HttpResponseBase
from django.template.response import TemplateResponse
from django.urls import URLPattern, path

from books.history.actors import ActorRef, get_or_create_actor
from books.models import Actor

VIEW_HISTORY = "books.view_history"
ADD_BOOK, CHANGE_BOOK = "books.add_book", "books.change_book"
MERGE_BOOKS = "books.merge_books"
IMPORT_BOOKS = "books.import_books"
BULK_EDIT, UNDO_OTHERS = "books.bulk_edit_books", "books.undo_others_operations"
# Django shows the list of books to users with any of these permissions.
SEE_BOOKS = ("books.view_book", CHANGE_BOOK)


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


def has_any_permission(request: HttpRequest, permissions: Iterable[str]) -> bool:
    return any(request.user.has_perm(permission) for permission in permissions)


def render_page(request: HttpRequest, name: str, title: str, **context: Any) -> TemplateResponse:
    context = {**admin.site.each_context(request), "title": title, **context}
    return TemplateResponse(request, f"admin/books/{name}.html", context)


def find_librarian(request: HttpRequest) -> ActorRef:
    return get_or_create_actor(Actor.Channel.ADMIN, user_id=request.user.pk)
