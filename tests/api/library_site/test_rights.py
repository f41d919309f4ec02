"""What a user may not do, no key or token of theirs may: each request with what it needs, and with all else."""

import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import httpx
import pytest
from django.contrib.auth.models import User
from django.urls import URLPattern, URLResolver, get_resolver
from pytest_django import Settings

from books.api.v2.views import BookViewSetV2
from books.api.views import BookViewSet
from books.operations.tasks import KINDS
from books.permissions import BOOK_ACTIONS, BULK_ACTIONS, OPERATION_KINDS
from oauth.credentials import Credential
from oauth.permissions import HasCredential, LacksPermission, LibraryAccess, get_required_scope, require_permission
from oauth.scopes import PERMISSIONS, SCOPES, list_asked, select_permissions
from tests.support.books import build_book
from tests.support.credentials import create_token_header
from tests.support.oauth_flows import create_key_header, create_user

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
    if HasCredential in view.permission_classes:
        scope: str | None = view.scope
        return scope
    return get_required_scope(method) if LibraryAccess in view.permission_classes else None


DOCUMENT = Path(__file__).parents[3] / "docs/app-developers.md"
DOORS = list(iter_doors())
SCOPE_NAMES = " ".join(SCOPES)


def test_the_document_has_the_table_of_all_rights() -> None:
    """Each action of a view is in it: a new route, or a new action, must say what it needs."""
    assert [(door.home, door.name) for door in DOORS if door.permissions is None] == []
    heading = "| scope | permissions of the user | requests |\n|---|---|---|\n"
    printed = DOCUMENT.read_text().partition(heading)[2].partition("\n\n")[0].splitlines()
    assert printed == build_rows(DOORS)


def test_each_kind_of_operation_and_row_has_its_permissions() -> None:
    assert (KINDS.keys(), BookViewSetV2.operations.keys()) == (OPERATION_KINDS.keys(), BULK_ACTIONS.keys())


def test_credentials_have_all_permissions_that_a_request_needs_and_no_others() -> None:
    needed = {name for door in DOORS for name in door.permissions or ()}
    others = {"books.undo_others_operations"}
    assert needed | others == PERMISSIONS
    for scope, (_, permissions) in SCOPES.items():
        of_scope = {name for door in DOORS if door.scope == scope for name in door.permissions or ()}
        assert of_scope | (others if scope == "write" else set()) == permissions - {None}, scope


def create_headers(name: str, permissions: Iterable[str]) -> list[dict[str, str]]:
    """Returns a key and a token with all scopes of a new user, who has these permissions."""
    user, names = create_user(name, permissions), sorted(permissions)
    token = create_token_header(user, scope=SCOPE_NAMES, entitlements=names)
    return [create_key_header(user, SCOPE_NAMES), token]


def send(api: httpx.Client, door: Door, header: dict[str, str]) -> httpx.Response:
    return api.request(door.method, door.address, json=door.body, headers={**door.headers, **header})


@pytest.mark.parametrize("permission", sorted({name for door in DOORS for name in door.permissions or ()}))
def test_what_needs_a_permission_is_refused_to_who_has_all_others_and_says_so(
    api: httpx.Client, permission: str
) -> None:
    headers = create_headers("ada", PERMISSIONS - {permission})
    sentence = select_permissions([permission]).get().name
    for door in DOORS:
        for header in headers if permission in (door.permissions or ()) else []:
            response = send(api, door, header)
            assert (response.status_code, f"'{sentence}'" in response.text) == (403, True), door
            assert "WWW-Authenticate" not in response.headers


@pytest.mark.parametrize("scope", [scope for scope in SCOPES if list_asked(scope)])
def test_a_scope_is_refused_to_who_has_no_permission_of_it(api: httpx.Client, scope: str) -> None:
    """Also where a request needs no permission."""
    key, _ = create_headers("ada", PERMISSIONS - list_asked(scope))
    assert {send(api, door, key).status_code for door in DOORS if door.scope == scope} == {403}


def test_what_a_user_may_do_is_open_to_their_credentials(api: httpx.Client) -> None:
    """Any permission of the scope is enough where a request needs none."""
    headers: dict[tuple[str, ...], list[dict[str, str]]] = {}
    for door in DOORS:
        of_scope = sorted(list_asked(door.scope))[:1] if door.scope else []
        permissions = tuple(door.permissions or of_scope)
        if permissions not in headers:
            headers[permissions] = create_headers(f"user {len(headers)}", permissions)
        for header in headers[permissions]:
            assert send(api, door, header).status_code not in (401, 403), door


def test_a_token_of_an_earlier_release_reads_and_must_be_refreshed_for_more(api: httpx.Client) -> None:
    root = User.objects.create_superuser("root")
    header = create_token_header(root, scope=SCOPE_NAMES, entitlements=None)
    for door in DOORS:
        response = send(api, door, header)
        is_refused = bool(door.permissions)
        statuses = (403,) if door.scope == "read" or not door.scope else (401,)
        assert (response.status_code in statuses) is is_refused, door
        if is_refused:
            assert "refresh it" in response.text


@pytest.mark.parametrize("access", ["open", "protected"])
def test_a_permission_that_was_got_since_counts_for_the_next_token(
    api: httpx.Client, settings: Settings, access: str
) -> None:
    """A credential is held to the permissions of its user whatever strangers may do."""
    settings.LIBRARY_ACCESS = access
    user = create_user("ada", ["books.view_history"])
    token = create_token_header(user, scope=SCOPE_NAMES, entitlements=["books.view_history"])
    key = create_key_header(user, SCOPE_NAMES)
    user.user_permissions.set(select_permissions(["books.view_history", "books.delete_book"]))
    assert api.delete("/api/v2/books/0", headers=key).status_code == 404
    response = api.delete("/api/v2/books/0", headers=token)
    assert response.status_code == 403
    assert "refresh it" in response.text


def test_who_has_got_the_permission_sends_the_request_again(api: httpx.Client) -> None:
    """Also with the same Idempotency-Key."""
    user = create_user("ada", ["books.add_book"])
    headers = {**create_key_header(user, SCOPE_NAMES), "Idempotency-Key": "once"}
    body = {"operations": [{"op": "delete", "id": api.post("/api/v2/books", json=build_book()).json()["id"]}]}
    assert api.post("/api/v2/books/bulk", json=body, headers=headers).status_code == 403
    user.user_permissions.add(*select_permissions(["books.delete_book"]))
    assert api.post("/api/v2/books/bulk", json=body, headers=headers).status_code == 200


def test_operations_of_others_are_read_by_who_may_see_them_in_the_admin(api: httpx.Client) -> None:
    change = {"kind": "edit", "filter": {"genre": "none"}, "set": {"year": 1900}}
    head = create_key_header(create_user("head", ["books.bulk_edit_books", "books.change_book"]), SCOPE_NAMES)
    address = api.post("/api/v2/operations", json=change, headers=head).headers["Location"]
    names = ("change_book", "view_history", "bulk_edit_books")
    keys = [create_key_header(create_user(name, [f"books.{name}"]), SCOPE_NAMES) for name in names]
    assert [api.get(address, headers=key).status_code for key in [head, *keys]] == [200, 403, 200, 200]


def test_permissions_of_other_models_are_looked_up(db: None) -> None:
    user, needed = create_user("ada", ["auth.add_group"]), frozenset({"auth.add_group"})
    credential = Credential("token", frozenset({"write"}), user.pk)
    require_permission(credential, "write", needed)
    user.user_permissions.clear()
    with pytest.raises(LacksPermission):
        require_permission(credential, "write", needed)
