"""A subclass of a viewset of books, written as REST framework's guide writes one, answers as ours does."""

from collections.abc import Callable
from typing import Any

import httpx
import pytest
from django.db.models import CharField, Count, F, Value
from rest_framework import serializers

from books.api.filters import ListFilterBackend
from books.api.v2.views import BookViewSetV2
from books.history.change_pages import read_book_page
from books.models import Book, Change
from books.serializers import BookSerializer
from library_site.db.keyset import Start
from tests.support.books import build_book
from tests.support.books_admin import change_book, create_book
from tests.support.oauth_flows import create_key_header, create_librarian
from tests.support.variant_fixtures import VERSIONS, Serve
from webhooks.models import Event

with_each_version = pytest.mark.parametrize("version", VERSIONS)


def save(view: Any, serializer: Any) -> None:
    serializer.save()


def delete(view: Any, instance: Any) -> None:
    instance.delete()


HOOKS = {"perform_create": save, "perform_update": save, "perform_destroy": delete}


def list_shown(client: httpx.Client, **parameters: Any) -> list[Any]:
    body = client.get("books", params=parameters).json()
    rows: list[Any] = body if isinstance(body, list) else body["results"]
    return rows


@with_each_version
def test_hooks_that_save_and_delete_are_changes_by_the_request(serve: Serve, version: str) -> None:
    header = create_key_header(create_librarian("ada"), "read write")
    client = serve(version, **HOOKS)
    created = client.post("books", json=build_book(genre="" if version == "v1" else "Novel"), headers=header)
    assert created.status_code == 201, created.text
    address = f"books/{created.json()['id']}"
    assert client.get(address).json() == created.json()
    assert client.put(address, json=build_book(title="Emma"), headers=header).json()["title"] == "Emma"
    assert client.delete(address, headers=header).status_code in (200, 204)
    entries = read_book_page(created.json()["id"], Start(), 5).rows
    assert [(entry.actor.channel, entry.actor.user) for entry in entries] == [(version, "ada")] * 3
    assert Event.objects.count() == 3


@with_each_version
def test_hooks_that_save_answer_a_conflict(serve: Serve, version: str) -> None:
    first, second = create_book(), create_book()
    ours = serve(version).post("books", json=build_book(isbn=first.isbn))
    client = serve(version, **HOOKS)
    response = client.post("books", json=build_book(isbn=first.isbn))
    assert (response.status_code, response.headers.get("Link")) == (409, ours.headers.get("Link"))
    assert response.status_code == ours.status_code == 409
    assert client.put(f"books/{second.pk}", json=build_book(isbn=first.isbn)).status_code == 409
    assert Change.objects.count() == 2


@pytest.mark.parametrize("method", ["PUT", "PATCH"])
def test_a_hook_that_saves_asks_for_the_state(serve: Serve, method: str) -> None:
    book, client = create_book(), serve("v2", **HOOKS)
    change_book(book, year=1)
    response = client.request(method, f"books/{book.pk}", json=build_book(), headers={"If-Match": f'"v2-{book.pk}-1"'})
    assert response.status_code == 412
    response = client.request(method, f"books/{book.pk}", json=build_book(), headers={"If-Match": f'"v2-{book.pk}-2"'})
    assert (response.status_code, response.headers["ETag"]) == (200, f'"v2-{book.pk}-3"')


QUERYSETS: dict[str, Callable[[Any], Any]] = {
    "distinct": lambda books: books.distinct(),
    "annotate": lambda books: books.annotate(size=Count("pk"), mark=Value("x", output_field=CharField())),
    "alias": lambda books: books.alias(next_year=F("year") + 1).filter(next_year__gt=0),
    "reverse": lambda books: books.reverse(),
    "order": lambda books: books.order_by("-year", "-pk"),
    "only": lambda books: books.only("title"),
    "union": lambda books: books.order_by().union(books.order_by().filter(year=0)),
}
# Those whose order version 1 shows; version 2 sorts by its parameter.
DESCENDING = {"reverse", "order"}


@with_each_version
@pytest.mark.parametrize("shape", QUERYSETS)
def test_a_queryset_of_any_shape_is_listed_changed_and_exported(
    serve: Serve, monkeypatch: pytest.MonkeyPatch, version: str, shape: str
) -> None:
    monkeypatch.setattr("books.api.v1.pagination.DEEP_OFFSET", 1)
    pks = [create_book().pk for _ in range(5)]
    if version == "v1" and shape in DESCENDING:
        pks.reverse()
    base, _ = VERSIONS[version]
    client = serve(version, get_queryset=lambda view: QUERYSETS[shape](base.get_queryset(view)))
    shown = [book["id"] for book in list_shown(client)]
    if version == "v1" and shape == "union":
        # PostgreSQL finds them in its own order, which is not always that of the ids.
        pks.sort(key=shown.index)
    assert shown == pks
    if version == "v1":
        assert [list_shown(client, skip=skip, limit=2)[0]["id"] for skip in range(5)] == pks
    else:
        check_version_2(client, pks)
    address = f"books/{pks[0]}"
    taken = client.post("books", json=build_book(isbn=client.get(address).json()["isbn"]))
    assert (taken.status_code, taken.headers["Link"].partition(">")[0].endswith(f"/{address}")) == (409, True)
    assert client.put(address, json=build_book(title="Emma")).status_code == 200
    assert client.get(address).json()["title"] == "Emma"
    assert client.delete(address).status_code in (200, 204)
    assert client.get(address).status_code == 404


def check_version_2(client: httpx.Client, pks: list[int]) -> None:
    """Pages in both directions, an export, a bulk request and a revert."""
    for sort, expected in (("-id", pks[::-1]), ("created_at", pks)):
        page = client.get("books", params={"sort": sort, "limit": 2, "count": "true"}).json()
        found = [book["id"] for book in page["results"]]
        while page["next"]:
            page = client.get(page["next"]).json()
            found += [book["id"] for book in page["results"]]
        back = client.get(page["previous"]).json()
        assert (found, page["count"]) == (expected, 5)
        assert [book["id"] for book in back["results"]] == expected[2:4]
    exported = client.get("books", headers={"Accept": "application/x-ndjson"}).text
    assert [f'"id":{pk},' in line for pk, line in zip(pks, exported.splitlines(), strict=True)] == [True] * 5
    items = [{"op": "update", "id": pk, "book": {"year": 2}} for pk in pks]
    assert client.post("books/bulk", json={"operations": items}).status_code == 200
    assert client.post(f"books/{pks[0]}/revert", json={"version": 1}).json()["year"] == 1813


def test_a_bulk_request_changes_only_what_the_queryset_has(serve: Serve) -> None:
    book, other = create_book(), create_book(genre="Restricted")

    def get_queryset(view: Any) -> Any:
        return BookViewSetV2.get_queryset(view).exclude(genre="Restricted").distinct()

    hiding = type(
        "Hiding", (ListFilterBackend,), {"filter_queryset": lambda *values: values[2].exclude(genre="Hidden")}
    )
    client, hidden = serve("v2", get_queryset=get_queryset, filter_backends=[hiding]), create_book(genre="Hidden")
    items = [{"op": "update", "id": pk, "book": {"year": 2}} for pk in (book.pk, other.pk, hidden.pk)]
    response = client.post("books/bulk", json={"operations": items})
    assert response.status_code == 422
    assert [detail["field"] for detail in response.json()["error"]["details"]] == ["1.id", "2.id"]


class ShownSerializer(BookSerializer):
    """Shows fields as REST framework does, in ways that a row of the table does not have."""

    year: Any = serializers.CharField()
    created_at: Any = serializers.DateTimeField(format="%d.%m.%Y")
    changed = serializers.DateTimeField(source="updated_at", format="%Y")
    size = serializers.IntegerField(read_only=True)
    name = serializers.CharField(source="__str__")
    initials = serializers.SerializerMethodField()

    class Meta(BookSerializer.Meta):
        fields = ("id", "title", "year", "created_at", "changed", "size", "name", "initials")

    def get_initials(self, book: Book) -> str:
        return "".join(word[0] for word in book.author.split())


@with_each_version
def test_a_serializer_shows_what_its_fields_say(serve: Serve, version: str) -> None:
    book, (base, _) = create_book(), VERSIONS[version]
    client = serve(
        version,
        serializer_class=ShownSerializer,
        get_queryset=lambda view: base.get_queryset(view).annotate(size=F("year") * 2),
    )
    expected = {
        "id": book.pk,
        "title": book.title,
        "year": "1813",
        "created_at": f"{book.created_at:%d.%m.%Y}",
        "changed": f"{book.created_at:%Y}",
        "size": 3626,
        "name": str(book),
        "initials": "JA",
    }
    assert list_shown(client) == [expected]
    assert client.get(f"books/{book.pk}").json() == expected
    changed = client.put(f"books/{book.pk}", json=build_book(year=1814))
    assert (changed.json()["year"], changed.json()["size"]) == ("1814", 3628)
    assert client.post("books", json=build_book(year=1)).json()["size"] == 2
