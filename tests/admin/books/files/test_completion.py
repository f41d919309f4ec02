"""An import completes what its records leave empty: the check asks the catalogues, and what it showed is written."""

from collections.abc import Callable, Iterator
from typing import Any
from urllib.parse import unquote

import pytest
from django.core.cache import cache
from django.test import Client
from pytest_django import Settings

from books.files import import_tasks
from books.files.catalogues import completion
from books.files.catalogues.entries import CatalogueLookup
from books.models import Book, ImportFile, ImportFinding
from library_site.jobs.leases import release_row
from tests.support.admin_pages import read_text, read_words
from tests.support.books import build_isbn
from tests.support.books_admin import create_book, delete_book
from tests.support.imports import choose, confirm, count_kinds, page, post_rules, upload
from tests.support.operations import claim_runner, run_operations
from tests.support.receivers import respond_with
from tests.support.sru_servers import (
    ISBN,
    Catalogue,
    build_record,
    build_response,
    respond_with_records,
    start_catalogue,
)

pytestmark = [pytest.mark.usefixtures("catalogues_of_this_machine")]

ON = {"complete_missing": "catalogues"}


def answer_any(handler: Any) -> None:
    """Has each book that is asked for, whose title is its ISBN."""
    isbn = unquote(handler.path).rpartition("=")[2]
    content = build_response(build_record(m020a=isbn, m245a=f"Title {isbn}"))
    respond_with(200, content)(handler)


@pytest.fixture
def catalogue(settings: Settings) -> Iterator[Catalogue]:
    with start_catalogue(answer_any) as catalogue:
        settings.SRU_SERVERS = [catalogue.template]
        yield catalogue


def build_file(*isbns: str) -> bytes:
    """A file of nothing but ISBNs."""
    return "\n".join(["isbn", *isbns]).encode()


def list_books() -> list[tuple[str, str, int, str]]:
    return list(Book.objects.order_by("pk").values_list("title", "author", "year", "genre"))


def import_file(browser: Client, content: bytes, **rules: str) -> ImportFile:
    file = upload(browser, content)
    choose(browser, file, **ON, **rules)
    confirm(browser, file)
    return file


def test_isbns_alone_become_books(head: Client, catalogue: Catalogue) -> None:
    file = upload(head, build_file(ISBN))
    shown = choose(head, file, **ON)
    assert count_kinds(shown) == {"new": 1}
    assert "Catalogues of other libraries know 1 record" in read_words(shown)
    assert f"Title {ISBN} (127.0.0.1)" in read_words(shown)
    assert head.get(page(file, "mapping")).context["form"]["complete_missing"].value() == "catalogues"
    confirm(head, file)
    assert list_books() == [(f"Title {ISBN}", "Austen, Jane", 1815, "Novel")]
    assert "(127.0.0.1)" in read_text(head.get(page(file, "check")))
    assert len(catalogue.paths) == 1


def test_only_what_a_record_leaves_empty_is_completed_and_defaults_come_last(
    head: Client, catalogue: Catalogue
) -> None:
    catalogue.answer = respond_with_records(build_record(m655a=""))
    import_file(head, f"isbn,title,author,year\n{ISBN},Ema, ,".encode(), default_genre="Classic")
    assert list_books() == [("Ema", "Austen, Jane", 1815, "Classic")]


def test_a_complete_record_and_one_without_an_isbn_are_not_asked_for(head: Client, catalogue: Catalogue) -> None:
    content = f"isbn,title,author,year,genre\n{ISBN},Ema,Jane,1815,Novel\nLOC 17,,Jane,1815,Novel\n"
    shown = choose(head, upload(head, content.encode()), **ON)
    assert count_kinds(shown) == {"new": 1, "refused": 1}
    assert catalogue.paths == []


def test_the_import_writes_what_the_check_showed(head: Client, catalogue: Catalogue) -> None:
    """Though the catalogue says something else by then, and this process has forgotten the answer."""
    file = upload(head, build_file(ISBN, build_isbn(1)))
    catalogue.answer = respond_with_records(build_record())
    assert count_kinds(choose(head, file, **ON)) == {"new": 1, "refused": 1}
    cache.clear()
    catalogue.answer = answer_any
    confirm(head, file)
    assert list_books() == [("Emma", "Austen, Jane", 1815, "Novel")]
    assert len(catalogue.paths) == 2


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        (respond_with_records(), "The catalogue does not have this ISBN."),
        (respond_with(500), "127.0.0.1: It answered with the status 500."),
        (respond_with_records(build_record(m020a="9780141439518")), "It answered with other books"),
        (respond_with_records(build_record(m655a="")), "genre: It is missing."),
    ],
)
def test_a_record_that_is_not_completed_comes_back_with_the_reason(
    head: Client, catalogue: Catalogue, answer: Callable[[Any], None], reason: str
) -> None:
    catalogue.answer = answer
    file = upload(head, build_file(ISBN, build_isbn(1)))
    shown = choose(head, file, **ON)
    assert count_kinds(shown) == {"refused": 2}
    refused = ImportFinding.objects.filter(file=file, kind="refused").order_by("position")
    assert reason in refused[0].reason


def test_a_book_that_is_there_keeps_what_the_record_leaves_empty(head: Client, catalogue: Catalogue) -> None:
    create_book(isbn=ISBN, title="Ours", author="A", year=1, genre="G")
    file = upload(head, f"isbn,title\n{ISBN},Theirs\n".encode())
    assert count_kinds(choose(head, file, on_match="replace", **ON)) == {"changed": 1}
    confirm(head, file)
    assert list_books() == [("Theirs", "A", 1, "G")]
    assert catalogue.paths == []


@pytest.mark.parametrize(("on_match", "title"), [("replace", "Theirs"), ("fill", "Ours")])
def test_a_gap_of_a_book_is_filled(head: Client, catalogue: Catalogue, on_match: str, title: str) -> None:
    """And nothing else is: what the catalogue says of the author stays out, and what the record says counts."""
    create_book(isbn=ISBN, title="Ours", author="A", year=1, genre="")
    import_file(head, f"isbn,title\n{ISBN},Theirs\n".encode(), on_match=on_match)
    assert list_books() == [(title, "A", 1, "Novel")]


def test_an_import_asks_nobody(head: Client, catalogue: Catalogue) -> None:
    """Not even about a record whose book was there when the check looked."""
    book = create_book(isbn=ISBN)
    file = upload(head, build_file(ISBN, build_isbn(1)))
    assert count_kinds(choose(head, file, **ON)) == {"new": 1, "left": 1}
    delete_book(book)
    confirm(head, file)
    assert count_kinds(head.get(page(file, "check"))) == {"new": 1, "refused": 1}
    assert len(catalogue.paths) == 1


def test_where_only_the_exact_isbn_counts_another_writing_is_asked_for(head: Client, catalogue: Catalogue) -> None:
    create_book(isbn="978-0-14-143958-7", title="Ours")
    import_file(head, build_file(ISBN), match_by="isbn")
    assert [title for title, *_ in list_books()] == ["Ours", f"Title {ISBN}"]


def test_a_check_that_another_worker_takes_over_asks_for_nothing_twice(
    head: Client, catalogue: Catalogue, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(import_tasks, "COMPLETED_BATCH", 2)
    isbns = [build_isbn(number) for number in range(5)]
    file = upload(head, build_file(*isbns))
    post_rules(head, file, **ON)
    runner = claim_runner()
    assert runner.advance()
    assert runner.advance()
    runner.operation.refresh_from_db()
    assert runner.operation.cursor == 2
    release_row(runner.operation)
    cache.clear()
    run_operations()
    shown = head.get(page(file, "check"))
    assert count_kinds(shown) == {"new": 5}
    assert "know 5 records" in read_words(shown)
    assert sorted(path.rpartition("%3D")[2] for path in catalogue.paths) == sorted(isbns)


def test_catalogues_that_do_not_answer_are_not_asked_for_ever(
    head: Client, catalogue: Catalogue, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(completion, "MAX_FAILURES_IN_A_ROW", 4)
    catalogue.answer = respond_with(500)
    file = upload(head, build_file(*map(build_isbn, range(9))))
    assert count_kinds(choose(head, file, **ON)) == {"refused": 9}
    assert len(catalogue.paths) == 4
    reasons = ImportFinding.objects.filter(file=file, kind="refused").order_by("-position")
    assert "No catalogue answers, so none is asked any more." in reasons[0].reason


def test_failures_before_an_answer_do_not_count(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(completion, "MAX_FAILURES_IN_A_ROW", 3)
    failure, absence = CatalogueLookup(problems=("It did not answer in time.",)), CatalogueLookup()
    answers = [failure, failure, absence, failure, failure, absence]
    monkeypatch.setattr(completion, "look_up", lambda isbn13s, _seconds: [answers.pop(0) for _ in isbn13s])
    completer = completion.Completer()
    looked_up = [completer.look_up([isbn]) for isbn in map(build_isbn, range(6))]
    assert list(looked_up[-1].values()) == [absence]


def test_the_choice_is_there_with_catalogues_alone(head: Client, settings: Settings) -> None:
    file = upload(head, build_file(ISBN))
    assert "complete_missing" not in read_text(head.get(page(file, "mapping")))
    assert "names no column title" in read_text(choose(head, file, **ON))
