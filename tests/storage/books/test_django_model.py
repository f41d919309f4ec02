"""A book is a Django model: what a developer knows of models, relations, fixtures and viewsets holds for it."""

import json
from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any
from zoneinfo import ZoneInfo

import pytest
from asgiref.sync import async_to_sync
from django.apps import AppConfig, apps
from django.core.management import call_command
from django.db import IntegrityError, connection, transaction
from django.db.models import F, ProtectedError, RestrictedError
from django.db.models.functions import ExtractHour, Now, TruncMonth
from django.utils import timezone

from books.history.actors import ActorRef
from books.models import Book, Change, Operation
from books.writing import changes
from books.writing.merging import merge_books
from tests.support.books import ACTOR, build_book
from tests.support.books_admin import change_book, create_book, delete_book
from tests.support.history import read_stored
from tests.support.operations import create_head_librarian, do_deletion, do_undo, list_problems
from webhooks.models import Event

if TYPE_CHECKING:
    from pytest_django import DjangoDbBlocker

BERLIN = ZoneInfo("Europe/Berlin")
NEW_YEAR = datetime(2025, 12, 31, 23, 30, tzinfo=UTC)


@pytest.fixture(scope="module")
def shelving_app(django_db_setup: None, django_db_blocker: "DjangoDbBlocker") -> Iterator[Any]:
    """An installed app with tables, whose models refer to books."""
    config = AppConfig.create("tests.support.shelving")
    config.apps = apps
    apps.app_configs[config.label] = config
    config.import_models()
    apps.clear_cache()
    models = [*config.get_models()]
    with django_db_blocker.unblock():
        with connection.schema_editor() as editor:
            for model in models:
                editor.create_model(model)
        yield config.models_module
        with connection.schema_editor() as editor:
            for model in reversed(models):
                editor.delete_model(model)
    del apps.app_configs[config.label]
    apps.clear_cache()


def list_kinds(pk: int) -> list[str]:
    changes = Change.objects.filter(book_id=pk).order_by("version")
    return [Change.Kind(kind).label for kind in changes.values_list("kind", flat=True)]


# Times


@pytest.fixture
def book_of_new_year(db: None) -> Book:
    """Added half an hour before the year 2026 in UTC, in which Berlin has it, and changed a day later."""
    pk = changes.create_book(build_book(), ACTOR, NEW_YEAR).id
    changes.change_book(pk, {"year": 1}, None, ACTOR, NEW_YEAR + timedelta(days=1))
    return Book.objects.get()


def test_times_are_aware(book_of_new_year: Book) -> None:
    assert book_of_new_year.created_at == NEW_YEAR
    assert timezone.now() - book_of_new_year.created_at > timedelta(days=1)
    assert timezone.localtime(book_of_new_year.created_at, BERLIN).year == 2026
    assert Change.objects.earliest("pk").at.tzinfo == UTC


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        (TruncMonth("created_at", tzinfo=BERLIN), datetime(2026, 1, 1, tzinfo=BERLIN)),
        (ExtractHour("created_at", tzinfo=BERLIN), 0),
        (F("updated_at") - F("created_at"), timedelta(days=1)),
        (F("created_at") + timedelta(days=1), NEW_YEAR + timedelta(days=1)),
    ],
)
def test_functions_of_times_work(book_of_new_year: Book, expression: Any, expected: object) -> None:
    assert Book.objects.annotate(value=expression).values_list("value", flat=True).get() == expected


@pytest.mark.parametrize(
    "condition",
    [
        {"created_at__date": date(2025, 12, 31)},
        {"created_at": NEW_YEAR.astimezone(BERLIN)},
        {"created_at__lt": Now()},
        {"created_at__range": (NEW_YEAR - timedelta(1), NEW_YEAR)},
        {"updated_at__gte": F("created_at") + timedelta(hours=23)},
    ],
)
def test_lookups_of_times_work(book_of_new_year: Book, condition: dict[str, Any]) -> None:
    assert Book.objects.filter(**condition).exists()
    assert not Book.objects.exclude(**condition).exists()


def test_lookups_of_dates_are_those_of_the_active_time_zone(book_of_new_year: Book) -> None:
    with timezone.override(BERLIN):
        assert Book.objects.filter(created_at__date=date(2026, 1, 1), created_at__year=2026).exists()
        assert Book.objects.datetimes("created_at", "year")[0] == datetime(2026, 1, 1, tzinfo=BERLIN)


# Relations


def test_rows_that_cascade_go_with_their_book(db: None, shelving_app: Any) -> None:
    book = create_book()
    note = shelving_app.Note.objects.create(book=book)
    shelving_app.Quotation.objects.create(note=note)
    shelving_app.Shelf.objects.create().books.add(book)
    cover = shelving_app.Cover.objects.create(book=book)
    count, counts = book.delete()
    assert counts == {"books.Book": 1, "shelving.Note": 1, "shelving.Quotation": 1, "shelving.Shelf_books": 1}
    assert count == 4
    cover.refresh_from_db()
    assert cover.book is None
    assert not shelving_app.Shelf.objects.get().books.exists()


@pytest.fixture(params=["Reservation", "Stamp"])
def protected(request: pytest.FixtureRequest, db: None, shelving_app: Any) -> Any:
    """A book that cannot be deleted: because of PROTECT, or of a row that DO_NOTHING leaves."""
    book = create_book()
    getattr(shelving_app, request.param).objects.create(book=book)
    return book


@pytest.mark.parametrize("protected", ["Reservation", "Exhibit", "Stamp"], indirect=True)
def test_a_protected_book_is_not_deleted_in_the_shell(protected: Any) -> None:
    before = read_stored()
    with pytest.raises(IntegrityError) as refusal, transaction.atomic():
        protected.delete()
    assert isinstance(refusal.value, ProtectedError | RestrictedError) == (not protected.stamps.exists())
    assert read_stored() == before
    assert protected.pk


@pytest.mark.parametrize("version", ["v1", "v2"])
def test_a_protected_book_is_a_conflict_in_the_api(protected: Any, api: Any, version: str) -> None:
    before = read_stored()
    response = api.delete(f"/api/{version}/books/{protected.pk}")
    assert (response.status_code, read_stored()) == (409, before)
    assert "something else refers to it" in response.text


def test_a_protected_book_is_a_conflict_in_bulk(protected: Any, api: Any) -> None:
    other = create_book()
    items = [{"op": "delete", "id": other.pk}, {"op": "delete", "id": protected.pk}]
    response = api.post("/api/v2/books/bulk", json={"operations": items})
    assert response.status_code == 409
    assert [detail["field"] for detail in response.json()["error"]["details"]] == ["1.id"]
    assert Book.objects.count() == 2


def test_operations_refuse_a_protected_book_with_the_reason(protected: Any) -> None:
    head = create_head_librarian()
    create_book(), create_book()
    operation = do_deletion(head)
    assert (operation.state, operation.changed, operation.refused) == ("done", 2, 1)
    assert list_problems(operation) == [(protected.pk, "protected", "")]
    assert [*Book.objects.all()] == [protected]


def test_an_undo_leaves_a_protected_book(api: Any, shelving_app: Any) -> None:
    items = [{"op": "create", "book": build_book()} for _ in range(2)]
    assert api.post("/api/v2/books/bulk", json={"operations": items}).status_code == 200
    book = Book.objects.latest("pk")
    shelving_app.Reservation.objects.create(book=book)
    undo = do_undo(Operation.objects.get(), create_head_librarian())
    assert (undo.state, undo.changed, undo.refused) == ("done", 1, 1)
    assert list_problems(undo) == [(book.pk, "protected", "")]
    assert [*Book.objects.all()] == [book]


def test_a_merge_does_with_related_rows_what_they_say(db: None, shelving_app: Any) -> None:
    kept, other = create_book(), create_book()
    shelving_app.Note.objects.create(book=other)
    versions = {kept.pk: 1, other.pk: 1}
    merge_books(kept.pk, versions, {}, create_head_librarian(), timezone.now())
    assert not shelving_app.Note.objects.exists()
    protected = create_book()
    shelving_app.Reservation.objects.create(book=protected)
    with pytest.raises(changes.BookProtected):
        merge_books(kept.pk, {kept.pk: 1, protected.pk: 1}, {}, ActorRef(1), timezone.now())
    assert Book.objects.count() == 2


def test_pages_say_why_a_protected_book_stays(protected: Any, admin_client: Any) -> None:
    page = f"/admin/books/book/{protected.pk}/delete/"
    response = admin_client.post(page, {"post": "yes"}, follow=True)
    assert Book.objects.filter(pk=protected.pk).exists()
    is_known_before = not protected.stamps.exists()
    assert ("protected" if is_known_before else "something else refers to it") in response.content.decode()
    action = {"action": "delete_books", "_selected_action": [protected.pk], "confirmed": "1"}
    response = admin_client.post("/admin/books/book/", action, follow=True)
    assert "1 book stays: something else refers to it." in response.content.decode()


# Fixtures


def dump(path: Path, *labels: str, **options: Any) -> str:
    call_command("dumpdata", *labels, output=str(path), **options)
    return str(path)


@pytest.mark.unannounced
@pytest.mark.unrecorded
@pytest.mark.parametrize(("format", "natural"), [("json", False), ("xml", True)])
def test_a_fixture_comes_back_after_a_flush(transactional_db: None, tmp_path: Path, format: str, natural: bool) -> None:
    first = create_book(title="Emma & <Co>", isbn="978-0-306-40615-7", available=False, genre="")
    gone, last = create_book(), create_book()
    delete_book(gone)
    stored = [*Book.objects.order_by("pk").values("pk", "title", "isbn", "isbn13", "available", "genre")]
    times = [*Book.objects.order_by("pk").values_list("created_at", flat=True)]
    fixture = dump(tmp_path / f"books.{format}", "books.book", format=format, use_natural_foreign_keys=natural)
    for model in (Book._base_manager, Change.objects, Event.objects):
        model.all()._raw_delete("default")
    call_command("loaddata", fixture, verbosity=0)
    assert [*Book.objects.order_by("pk").values("pk", "title", "isbn", "isbn13", "available", "genre")] == stored
    for before, after in zip(times, Book.objects.order_by("pk").values_list("created_at", flat=True), strict=True):
        # Django writes milliseconds into JSON.
        assert abs(after - before) < timedelta(milliseconds=1)
    assert {pk: list_kinds(pk) for pk in (first.pk, last.pk)} == {first.pk: ["created"], last.pk: ["created"]}
    assert [*Event.objects.order_by("pk").values_list("kind", "subject")] == [
        ("book.created", first.pk),
        ("book.created", last.pk),
    ]
    assert create_book().pk > last.pk


def write_fixture(path: Path, *rows: dict[str, Any]) -> str:
    records = [{"model": "books.book", "pk": row.pop("pk"), "fields": row} for row in rows]
    path.write_text(json.dumps(records))
    return str(path)


def test_a_fixture_needs_no_more_than_the_fields(db: None, tmp_path: Path) -> None:
    pk = create_book().pk + 500
    call_command("loaddata", write_fixture(tmp_path / "a.json", {"pk": pk, **build_book(title="Éa")}), verbosity=0)
    book = Book.objects.get(pk=pk)
    assert (book.title_folded, book.version, book.available) == ("éa", 1, True)
    assert timezone.now() - book.created_at < timedelta(minutes=10)
    assert create_book().pk == pk + 1


def test_a_fixture_of_an_earlier_release_has_times_in_utc(db: None, tmp_path: Path) -> None:
    row = {"pk": 500, "created_at": "2025-12-31T23:30:00", **build_book()}
    call_command("loaddata", write_fixture(tmp_path / "a.json", row), verbosity=0)
    assert Book.objects.get(pk=500).created_at == NEW_YEAR


@pytest.mark.parametrize("taken", ["id", "isbn"])
def test_a_fixture_with_a_taken_id_or_isbn_changes_nothing(db: None, tmp_path: Path, taken: str) -> None:
    book = create_book()
    pk, isbn = (book.pk, "new") if taken == "id" else (book.pk + 5, book.isbn)
    rows = [{"pk": book.pk + 4, **build_book()}, {"pk": pk, **build_book(isbn=isbn)}]
    before = read_stored()
    with pytest.raises(
        IntegrityError, match=rf"Could not load books\.Book\(pk={pk}\): Another book has this {taken}: "
    ):
        call_command("loaddata", write_fixture(tmp_path / "a.json", *rows), verbosity=0)
    assert read_stored() == before


def test_a_fixture_restores_a_deleted_book(db: None, tmp_path: Path) -> None:
    book = create_book(title="Emma")
    pk, fixture = book.pk, dump(tmp_path / "a.json", "books.book")
    book.delete()
    call_command("loaddata", fixture, verbosity=0)
    assert (Book.objects.get(pk=pk).version, list_kinds(pk)) == (3, ["created", "deleted", "restored"])


# Instances


def test_a_book_of_some_fields_is_saved(db: None) -> None:
    pk = create_book().pk
    change_book(Book.objects.get(), year=1)
    book = Book.objects.only("title").get()
    book.title = "Emma"
    book.save()
    assert (Book.objects.get(pk=pk).title, Book.objects.get(pk=pk).year) == ("Emma", 1)
    assert Change.objects.latest("pk").after == {"title": "Emma"}


@pytest.mark.filterwarnings("ignore:Passing positional arguments to save")
def test_arguments_of_save_may_have_no_names(db: None) -> None:
    book: Any = create_book()
    book.title, book.year = "Emma", 1
    book.save(False, False, None, ["title"])  # noqa: FBT003  # as Django 5.2 still takes them
    assert (Book.objects.get().title, Book.objects.get().year) == ("Emma", 1813)


def test_a_book_with_a_new_id_is_added_under_it(db: None) -> None:
    pk = create_book().pk + 7
    book = Book(pk=str(pk), **build_book())
    book.save()
    assert (book.version, list_kinds(pk), create_book().pk) == (1, ["created"], pk + 1)
    assert Book.objects.get(pk=pk).isbn == book.isbn


def test_a_book_with_the_id_of_another_replaces_its_fields(db: None) -> None:
    there = create_book()
    change_book(there, title="Ema")
    Book(pk=there.pk, **build_book(title="Emma")).save()
    book = Book.objects.get()
    assert (book.title, book.version, list_kinds(book.pk)) == ("Emma", 3, ["created", "changed", "changed"])
    with pytest.raises(IntegrityError, match=f"^Another book has this id: {book.pk}$"):
        book.save(force_insert=True)


def test_a_book_is_found_or_made(db: None) -> None:
    values = build_book()
    isbn = values.pop("isbn")
    found = [
        Book.objects.get_or_create(isbn=isbn, defaults=values),
        Book.objects.update_or_create(isbn=isbn, defaults=values),
        async_to_sync(Book.objects.all().aget_or_create)(isbn=isbn, defaults=values),
        async_to_sync(Book.objects.all().aupdate_or_create)(isbn=isbn, defaults={"year": 1}, create_defaults=values),
    ]
    assert [is_new for _, is_new in found] == [True, False, False, False]
    assert list_kinds(found[0][0].pk) == ["created", "changed"]
