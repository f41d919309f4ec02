"""What the pages of the history have in common: who may see them, how they are rendered, and links between pages."""

from collections.abc import Callable, Iterable
from functools import wraps
from typing import Any, NamedTuple
from urllib.parse import urlencode

from django.contrib import admin
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, QueryDict
from django.http.response import HttpResponseBase
from django.template.response import TemplateResponse
from django.urls import URLPattern, path

from books.history.actors import ActorRef, find_actor
from books.models import Actor
from library_site.api.cursors import InvalidCursor, PageCursor
from library_site.db.keyset import Page, Start

PAGE_SIZE = 50
VIEW_HISTORY = "books.view_history"
ADD_BOOK, CHANGE_BOOK = "books.add_book", "books.change_book"
MERGE_BOOKS = "books.merge_books"
IMPORT_BOOKS = "books.import_books"
BULK_EDIT, UNDO_OTHERS = "books.bulk_edit_books", "books.undo_others_operations"
# With any of these, Django shows the list of books.
SEE_BOOKS = ("books.view_book", CHANGE_BOOK)


class Links(NamedTuple):
    """The addresses of the pages beside this one, None where there is none."""

    newer: str | None
    older: str | None
    newest: str | None


def build_route(route: str, view: Callable[..., HttpResponseBase], name: str, *permissions: str) -> URLPattern:
    """Returns the address of a page, for people who are signed in to the admin and have one of these permissions.

    Without permissions, the view itself knows who may see it.
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
    return find_actor(Actor.Channel.ADMIN, user_id=request.user.pk)


def read_start(query: QueryDict, cursor_class: type[PageCursor]) -> Start:
    """Returns where a page begins: with changes older or newer than a cursor. Any other text begins it anew."""
    name = "newer" if "newer" in query else "older"
    try:
        return cursor_class.decode(query.get(name, "")).to_start()
    except InvalidCursor:
        return Start()


def build_links(query: QueryDict, cursor_class: type[PageCursor], start: Start, page: Page[Any]) -> Links:
    """Links the pages beside this one, and the first page."""
    return Links(
        build_query(query, newer=cursor_class.build(page.before, backward=True).encode()) if page.before else None,
        build_query(query, older=cursor_class.build(page.behind, backward=False).encode()) if page.behind else None,
        build_query(query) if start.key else None,
    )


def build_query(query: QueryDict, **cursor: str) -> str:
    parameters = {name: value for name, value in query.items() if value and name not in ("newer", "older")}
    return f"?{urlencode({**parameters, **cursor})}"
