"""The list of books as a file."""

from datetime import timedelta
from threading import Event

import pytest
from django.contrib.auth.models import Permission, User
from django.test import Client
from django.utils import timezone

from books.files import export_tasks
from books.files.export_tasks import iter_expired
from books.files.formats.registry import STREAMED_FORMATS
from books.files.uploads import KEPT_DAYS
from books.models import Operation
from books.operations import worker
from library_site.jobs.expiry import delete_by_kind
from library_site.jobs.leases import release_row
from tests.support.book_files import read_records
from tests.support.books_admin import LIST, create_book
from tests.support.operations import claim_runner, run_operations

EXPORT = f"{LIST}export/"


def test_the_books_of_the_list_are_in_the_file(librarian: Client) -> None:
    for year in (1900, 1901, 1902, 1903):
        create_book(title=f"Emma {year}", year=year)
    create_book(title="Other", year=1902)
    query = {"q": "emma", "year_from": "1901", "year_to": "1902", "sort": "-id"}
    for format in STREAMED_FORMATS.values():
        response = librarian.get(EXPORT, {"format": format.name, **query})
        assert response["Content-Disposition"] == (
            f'attachment; filename="books-emma-1901-1902-{timezone.localdate()}{format.extension}"'
        )
        titles = [record.values["title"] for record in read_records(format.name, response.getvalue())]
        assert titles == ["Emma 1901", "Emma 1902"], format.name


def test_the_list_offers_what_it_shows(librarian: Client) -> None:
    create_book(title="Emma")
    page = librarian.get(LIST, {"q": "emma", "availability": "available", "sort": "title"})
    assert b'export/?format=marcxml&amp;q=emma&amp;availability=available&amp;sort=title">MARCXML</a>' in page.content


def test_an_unknown_format_leads_back_to_the_list(librarian: Client) -> None:
    response = librarian.get(EXPORT, {"format": "xlsx", "q": "emma"}, follow=True)
    assert response.redirect_chain == [(f"{LIST}?q=emma", 302)]
    assert "Choose a format." in response.content.decode()


def test_a_filter_with_nul_is_refused_in_words(librarian: Client) -> None:
    response = librarian.post(f"{EXPORT}?format=xlsx&q=a%00b", headers={"Accept": "text/html"})
    assert response.status_code == 400
    assert "A filter has a character that cannot be stored." in response.content.decode()
    assert not Operation.objects.exists()


def test_a_workbook_is_written_by_a_worker(librarian: Client, client: Client) -> None:
    for number in range(3):
        create_book(title=f"=Emma {number}", year=1900 + number)
    response = librarian.post(f"{EXPORT}?format=xlsx&q=emma&year_from=1901", follow=True)
    [(address, _status)] = response.redirect_chain
    assert librarian.get(f"{address}workbook/").status_code == 404
    run_operations()
    assert f"{address}workbook/" in librarian.get(address).content.decode()
    workbook = librarian.get(f"{address}workbook/")
    name = f"books-emma-1901-{timezone.now().date()}.xlsx"
    assert workbook["Content-Disposition"] == f'attachment; filename="{name}"'
    assert [record.values["title"] for record in read_records("xlsx", workbook.getvalue())] == ["=Emma 1", "=Emma 2"]
    assert delete_by_kind(iter_expired(timezone.now() + timedelta(days=KEPT_DAYS))) == {
        "parts of exported workbooks": 1
    }
    assert librarian.get(f"{address}workbook/").status_code == 404


def test_a_worker_that_takes_over_writes_the_workbook_anew(librarian: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(export_tasks, "CHUNK_BYTES", 2_000)
    create_book(title="First")
    librarian.post(f"{EXPORT}?format=xlsx")
    for _ in range(3):
        lease = worker.claim_operation()
        assert lease
        worker.OperationRunner(lease, Event()).advance()
        release_row(lease)
    create_book(title="Second")
    run_operations()
    operation = Operation.objects.get(kind="export")
    records = read_records("xlsx", b"".join(export_tasks.iter_workbook(operation)))
    assert [record.values["title"] for record in records] == ["First", "Second"]
    assert (operation.state, operation.unchanged, operation.changed) == ("done", 2, 0)


@pytest.mark.parametrize("step_count", [0, 1])
def test_no_workbook_is_written_for_who_may_not_see_the_books_any_more(
    librarian: Client, astrid: User, step_count: int
) -> None:
    create_book()
    librarian.post(f"{EXPORT}?format=xlsx")
    runner = claim_runner()
    for _ in range(step_count):
        assert runner.advance()
    astrid.groups.clear()
    assert not runner.advance()
    operation = Operation.objects.get(kind="export")
    assert (operation.state, operation.error) == ("failed", "Who began this may not do so any more.")


def test_who_may_see_the_books_alone_gets_a_workbook(client: Client, db: None) -> None:
    reader = User.objects.create_user("reader", is_staff=True)
    reader.user_permissions.add(Permission.objects.get(codename="view_book"))
    client.force_login(reader)
    client.post(f"{EXPORT}?format=xlsx")
    run_operations()
    assert Operation.objects.get(kind="export").state == "done"


def test_a_workbook_is_for_who_asked_for_it(librarian: Client) -> None:
    librarian.post(f"{EXPORT}?format=xlsx")
    run_operations()
    operation = Operation.objects.get(kind="export")
    other = User.objects.create_user("other", is_staff=True, is_superuser=True)
    librarian.force_login(other)
    assert librarian.get(f"{LIST}operations/{operation.pk}/workbook/").status_code == 404
