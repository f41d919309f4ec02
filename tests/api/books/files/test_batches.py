"""A record gets the same verdict in batches of any size, after a restart, and in a check."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import date
from io import BytesIO
from threading import Event
from typing import Any, NamedTuple

import pytest
from django.contrib.auth.models import User
from django.db import transaction
from hypothesis import given, settings
from hypothesis import strategies as st

from books.files.columns.tables import guess_mapping
from books.files.earlier_records import EarlierRecords
from books.files.formats.csv_files import read_csv
from books.files.import_tasks import get_counts
from books.files.matching import REJECTED_VERDICTS, Verdict, decide_records, read_books
from books.files.parsing import ImportRules, parse_records
from books.history.actors import ActorRef, get_or_create_actor
from books.models import Actor, Book, Change, ImportFile, ImportFinding, Operation
from books.operations import worker
from tests.support.books import build_isbn
from tests.support.books_admin import create_book
from tests.support.imports import store_file
from tests.support.operations import begin_check, begin_import, claim_runner, create_head_librarian
from tests.support.strategies import hypothesis_settings

# Writings of three ISBNs, and what is none.
EMMA, EMMA_10, EMMA_PLAIN = "978-0-14-143951-8", "0141439513", "9780141439518"
LALKA, LALKA_10 = "9780006514466", "0-00-651446-4"
LALKA_HYPHENS, LALKA_BLANKS = "978-0-00-651446-6", "978 0 00 651446 6"
PERSUASION, PERSUASION_10 = "9780140620740", "0140620745"
NEW, TODAY = "9780306406157", date(2026, 1, 31)
ISBNS = [EMMA, EMMA_10, EMMA_PLAIN, LALKA, LALKA_10, PERSUASION, PERSUASION_10, NEW]
HEADER = ["id", "title", "author", "year", "isbn", "genre"]
MATCHES, RULES = ("isbn13", "isbn", "id"), ("refuse", "replace", "fill", "leave")


class Result(NamedTuple):
    """What an import or a check leaves; a check has neither books nor changes."""

    counts: Mapping[str, int]
    returned: Sequence[tuple[int, str, str]]
    books: Sequence[Any] = ()
    changes: Sequence[Any] = ()


@contextmanager
def roll_back() -> Iterator[None]:
    """Lets the worker open transactions of its own, and takes all back."""
    outer: Any = transaction.atomic()
    outer._from_testcase = True
    with outer:
        yield
        transaction.set_rollback(True)


def list_books() -> list[Any]:
    """New books are in the order of their ids, which differ."""
    known = list(Book.objects.filter(genre="there").order_by("pk").values_list("pk", "isbn", "title", "year"))
    return [*known, *Book.objects.exclude(genre="there").order_by("pk").values_list("isbn", "title", "year")]


def list_changes(operation: Operation) -> list[Any]:
    """A batch writes new books before changed ones, so the order differs."""
    isbns = dict(Book.objects.values_list("pk", "isbn"))
    rows = Change.objects.filter(operation=operation).values_list("book_id", "kind", "version", "before", "after")
    return sorted(((isbns[pk], *map(str, values)) for pk, *values in rows))


def run_task(
    content: bytes,
    rules: Mapping[str, Any],
    size: int,
    monkeypatch: pytest.MonkeyPatch,
    begin: Callable[[ActorRef, ImportFile], Operation] = begin_import,
    *,
    restarts: bool = False,
) -> Result:
    """With restarts another worker takes over after each batch."""
    monkeypatch.setattr(worker, "BATCH_SIZES", dict.fromkeys(worker.BATCH_SIZES, size))
    monkeypatch.setattr(worker, "FIRST_BATCH_SIZE", size)
    monkeypatch.setattr(worker, "MIN_BATCH_SIZE", 1)
    user = User.objects.get()
    operation = begin(get_or_create_actor(Actor.Channel.IMPORT, user_id=user.pk), store_file(content, user.pk, **rules))
    runner = claim_runner()
    while runner.advance():
        runner = worker.OperationRunner(runner.operation, Event()) if restarts else runner
    operation.refresh_from_db()
    assert operation.state == "done", operation.error
    findings = ImportFinding.objects.filter(operation_id=operation.pk, kind__in=REJECTED_VERDICTS).order_by("position")
    returned = list(findings.values_list("line", "kind", "reason"))
    found = (list_books(), list_changes(operation)) if begin is begin_import else ()
    return Result(get_counts(operation), returned, *found)


def build_content(rows: Sequence[Sequence[Any]]) -> bytes:
    return "".join(f"{','.join(map(str, row))}\n" for row in (HEADER, *rows)).encode()


def assert_same_results(rows: Sequence[Sequence[Any]], monkeypatch: pytest.MonkeyPatch, **rules: Any) -> Result:
    """Returns the result."""
    content = build_content(rows)
    with roll_back():
        result = run_task(content, rules, 500, monkeypatch)
    with roll_back():
        assert run_task(content, rules, 1, monkeypatch, restarts=True) == result
    with roll_back():
        assert run_task(content, rules, 3, monkeypatch, begin_check, restarts=True)[:2] == result[:2]
    return result


@pytest.fixture
def pks(db: None) -> list[int]:
    """The ids of three books. Two have the same ISBN in different writings."""
    create_head_librarian()
    isbns = [EMMA, LALKA, LALKA_10]
    return [create_book(isbn=isbn, title=f"Book {isbn}", year=1900, genre="there").pk for isbn in isbns]


def build_row(number: int, isbn: str, pk: int | str = "") -> list[Any]:
    return [pk, f"Title {number}", "Author", 1950 + number, isbn, "Novel"]


@pytest.mark.parametrize(("match_by", "on_match"), [("isbn13", "fill"), ("id", "replace")])
def test_a_file_with_repetitions_has_one_result(
    pks: list[int], monkeypatch: pytest.MonkeyPatch, match_by: Any, on_match: Any
) -> None:
    isbns = [PERSUASION, EMMA_10, PERSUASION_10, EMMA, NEW, LALKA_10, PERSUASION, EMMA_PLAIN, LALKA, NEW]
    rows = [build_row(number, isbn) for number, isbn in enumerate(isbns)]
    rows[4][0], rows[7][0], rows[8][0] = pks[0], pks[2], pks[0]
    result = assert_same_results(rows, monkeypatch, match_by=match_by, on_match=on_match)
    assert len(result.books) - 3 == result.counts["new"]
    assert [row[0] for row in result.returned if row[2] == "isbn: The book on line 2 has it."] == [8]


@settings(hypothesis_settings, max_examples=hypothesis_settings.max_examples // 2)
@given(
    isbns=st.lists(st.sampled_from(ISBNS), min_size=2, max_size=7),
    places=st.lists(st.sampled_from([None, None, 0, 1, 2, 3]), min_size=7, max_size=7),
    match_by=st.sampled_from(MATCHES),
    on_match=st.sampled_from(RULES),
    on_none=st.sampled_from(["add", "leave"]),
    take_doubtful=st.booleans(),
)
def test_any_file_has_one_result(
    pks: list[int], monkeypatch: pytest.MonkeyPatch, isbns: list[str], places: list[int | None], **options: Any
) -> None:
    # The book that the import adds first may get the id behind the last one.
    ids = [*pks, pks[-1] + 1]
    pairs = zip(isbns, places, strict=False)
    rows = [build_row(n, isbn, "" if place is None else ids[place]) for n, (isbn, place) in enumerate(pairs)]
    assert_same_results(rows, monkeypatch, **options)


def test_a_batch_that_comes_again_does_not_repeat_itself(pks: list[int]) -> None:
    rows = [build_row(1, NEW), build_row(2, EMMA_10), build_row(3, NEW)]
    rules = ImportRules(guess_mapping(HEADER), on_match="replace", take_doubtful=True)
    records = list(parse_records(read_csv(BytesIO(build_content(rows))).records, rules))
    earlier = EarlierRecords()
    first, second = (decide_records(records, rules, read_books, earlier, TODAY) for _ in range(2))
    assert first == second
    [again] = decide_records(records[:1], rules, read_books, earlier, TODAY)
    assert again.name == Verdict.NEW


def test_an_isbn_is_free_when_an_earlier_record_gives_its_book_another_one(
    pks: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = [build_row(1, LALKA, pks[0]), build_row(2, NEW, pks[1]), build_row(3, LALKA, pks[2])]
    result = assert_same_results(rows, monkeypatch, match_by="id", on_match="replace")
    assert result.returned == [
        (2, "refused", "isbn: Another book has it."),
        (4, "refused", "isbn: The book on line 2 has it."),
    ]
    rows = [build_row(1, NEW, pks[1]), build_row(2, LALKA, pks[0]), build_row(3, PERSUASION)]
    result = assert_same_results(rows, monkeypatch, match_by="id", on_match="replace")
    assert result.counts == {"changed": 2, "new": 1}


@pytest.mark.parametrize(
    ("place", "isbn", "reason"),
    [
        (0, LALKA_HYPHENS, "isbn: The book on line 2 has it in another writing. isbn: Book {second} has it"),
        (1, NEW, "It is about the same book as line 2."),
        (2, NEW, "isbn: Book {second} has it in another writing."),
    ],
)
def test_a_record_is_compared_with_the_books_as_they_were(
    pks: list[int], monkeypatch: pytest.MonkeyPatch, place: int, isbn: str, reason: str
) -> None:
    """The first record changes an isbn; the second one has a writing that no book has."""
    rows = [build_row(1, isbn, pks[place]), build_row(2, LALKA_BLANKS)]
    result = assert_same_results(rows, monkeypatch, match_by="id", on_match="replace")
    assert result.returned[0][2].startswith(reason.format(second=pks[1]))


def test_a_book_that_the_import_added_matches_no_id(pks: list[int], monkeypatch: pytest.MonkeyPatch) -> None:
    rows = [build_row(number, build_isbn(number), pks[-1] + number if number else "") for number in range(5)]
    result = assert_same_results(rows, monkeypatch, match_by="id", on_match="replace")
    assert result.counts == {"new": 5}
