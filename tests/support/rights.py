"""The table of rights: what each request to the interface needs, read from the views of all URL patterns."""

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from django.urls import URLPattern, URLResolver, get_resolver

from books.api.v2.views import BookViewSetV2
from books.api.views import BookViewSet
from books.permissions import BOOK_ACTIONS, BULK_ACTIONS, OPERATION_KINDS
from oauth.permissions import HasViewScope, LibraryAccess, get_required_scope
from tests.support.books import build_book

PARAMETER = re.compile(r"<\w+:(\w+)>|\(\?P<(\w+)>[^)]*\)")
CSV = {"Accept": "text/csv"}
BOOK_BODIES: dict[str, Any] = {"create": build_book(), "update": build_book(), "partial_update": {"year": 1900}}
BULK_ITEMS: dict[str, dict[str, Any]] = {
    "create": {"op": "create", "book": build_book()},
    "update": {"op": "update", "id": 1, "book": {"year": 1900}},
    "delete": {"op": "delete", "id": 1},
}
OPERATION_BODIES: dict[str, dict[str, Any]] = {
    "edit": {"kind": "edit", "filter": {"genre": "none"}, "set": {"year": 1900}},
    "delete": {"kind": "delete", "filter": {"genre": "none"}},
}


class Door(NamedTuple):
    """A request, as the document names it, and how to send it. `action` is None if no table has it."""

    method: str
    path: str
    scope: str | None
    permissions: Sequence[str] | None
    variant: str = ""
    body: Any = None
    headers: dict[str, str] = {}  # a default of NamedTuple
    home: str = ""

    @property
    def name(self) -> str:
        return f"`{self.method} {self.path}`{f', {self.variant}' if self.variant else ''}"

    @property
    def address(self) -> str:
        path = re.sub(r"\{(\w+)\}", lambda match: "0" * 12 if match[1] == "key_id" else "0", self.path)
        return f"{self.home}{path}"

    @property
    def needs(self) -> str:
        permissions = ", ".join(f"`{name.partition('.')[2]}`" for name in self.permissions or ()) or "none"
        return f"| {f'`{self.scope}`' if self.scope else 'any'} | {permissions} |"


def build_rows(doors: Iterable[Door]) -> list[str]:
    """Returns the rows of the document, one for what requests need. Both versions have the same."""
    requests: dict[str, list[str]] = {}
    for _, _, name, needs in sorted({(door.path, door.method, door.name, door.needs) for door in doors}):
        requests.setdefault(needs, []).append(name)
    return [f"{needs} {'; '.join(requests[needs])} |" for needs in sorted(requests)]


def iter_patterns(patterns: Sequence[Any], prefix: str = "") -> Iterator[tuple[str, URLPattern]]:
    for pattern in patterns:
        route = prefix + str(pattern.pattern).removeprefix("^").removesuffix("$")
        if isinstance(pattern, URLResolver):
            yield from iter_patterns(pattern.url_patterns, route)
        else:
            yield route, pattern


def iter_doors() -> Iterator[Door]:
    """Yields the doors of all versions."""
    for route, pattern in iter_patterns(get_resolver().url_patterns):
        view: Any = getattr(pattern.callback, "cls", None)
        home = re.match(r"api(/v\d+)?/", route)
        if not home or view is None:
            continue
        path = PARAMETER.sub(lambda match: f"{{{match[1] or match[2]}}}", route[home.end() - 1 :])
        for method, action in getattr(pattern.callback, "actions", {}).items():
            if method == "head":
                continue
            permissions = getattr(view, "required_permissions", {}).get(action)
            door = Door(
                method.upper(), path, find_scope(view, method.upper()), permissions, home=f"/{home[0].rstrip('/')}"
            )
            yield from iter_variants(door, view, action)


def iter_variants(door: Door, view: Any, action: str) -> Iterator[Door]:
    """Yields the door, and those of the requests to it that need more."""
    if action == "bulk":
        for op, item in BULK_ITEMS.items():
            yield door._replace(variant=f"`{op}`", permissions=BULK_ACTIONS[op], body={"operations": [item]})
    elif action == "create" and door.path == "/operations":
        for kind, body in OPERATION_BODIES.items():
            yield door._replace(variant=f"`{kind}`", permissions=OPERATION_KINDS[kind], body=body)
    else:
        # With a valid body, the compiled path handles the request.
        yield door._replace(body=BOOK_BODIES.get(action) if issubclass(view, BookViewSet) else None)
    if action == "list" and issubclass(view, BookViewSetV2):
        yield door._replace(variant="a file", permissions=BOOK_ACTIONS["export"], headers=CSV)


def find_scope(view: Any, method: str) -> str | None:
    if HasViewScope in view.permission_classes:
        return str(view.scope)
    return get_required_scope(method) if LibraryAccess in view.permission_classes else None
