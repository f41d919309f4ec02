"""The database computes the match key of a book as Python does, and finds duplicates by its index."""

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from books.book.match_keys import MatchKey, build_match_key
from books.book.texts import fold_loosely
from books.models import SearchText
from books.search import duplicates
from books.search.duplicates import check_pairs, count_pairs, find_same_works
from tests.support.books_admin import change_book, create_book, delete_book
from tests.support.history import explain

pytestmark = pytest.mark.usefixtures("db")

TEXTS = ["Emma", "Emma : a novel /", ": x", "Éa" * 150, "10% -_'Q'\\ : %s", "日本語：x: y", "İstanbul.,;= :", "a:b:c"]
AUTHORS = ["Jane Austen", "Austen, Jane-Ann.", "-", "Öaeinor" * 70, "村上 春樹", "O'Neil \\ %s"]


def test_the_keys_of_the_database_are_those_of_python() -> None:
    books = [(title, author) for title in TEXTS for author in AUTHORS]
    for title, author in books:
        create_book(title=title, author=author)
    keys = SearchText.objects.order_by("pk").annotate(key=MatchKey()).values_list("key", flat=True)
    assert list(keys) == [build_match_key(fold_loosely(title), fold_loosely(author)) for title, author in books]


def test_the_same_work_is_found_by_the_index() -> None:
    pks = [create_book(title=title, author="Jane Austen").pk for title in ("Emma", "emma: a novel", "Emmaus")]
    create_book(title="Emma", author="Neja Austen")
    with CaptureQueriesContext(connection) as queries:
        found = find_same_works([("EMMA.", "Austen, Jane"), ("Persuasion", "Jane Austen")])
    assert found == {("EMMA.", "Austen, Jane"): {pks[0]: True, pks[1]: True}}
    # Of few books, PostgreSQL reads all, or all of another index.
    assert "search_text_by_match_key" in explain(queries[0]["sql"], "seqscan", "indexscan")


def test_another_subtitle_is_no_same_title() -> None:
    book = create_book(title="Harbour saga: the grey tide", author="Edda Marlow")
    titles = {"Harbour saga": True, "Harbour saga : The Grey Tide": True, "Harbour saga: the last tide": False}
    found = find_same_works([(title, "Marlow, Edda") for title in titles])
    assert found == {(title, "Marlow, Edda"): {book.pk: is_same} for title, is_same in titles.items()}


def test_pairs_are_counted_in_many_groups(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(duplicates, "GROUPS_AT_ONCE", 2)
    monkeypatch.setattr(duplicates, "MAX_GROUP", 3)
    pks = [create_book(title=title).pk for title in ("A", "B", "C", "A: x", "C", "B", "B.", "B")]
    found = count_pairs()["pairs"]
    assert [tuple(pair[:2]) for pair in found] == [
        (pks[0], pks[3]),
        (pks[1], pks[5]),
        (pks[1], pks[6]),
        (pks[2], pks[4]),
        (pks[5], pks[6]),
    ]
    assert check_pairs(found) == [tuple(pair[:2]) for pair in found]


def test_other_accents_and_signs_make_no_other_work() -> None:
    pks = [
        create_book(title=title, author=author).pk
        for title, author in (("L’Étranger", "Sean O’Brien"), ("L'etranger", "O'Brien, Seán"))
    ]
    assert [tuple(pair[:2]) for pair in count_pairs()["pairs"]] == [tuple(pks)]
    work = ("L‘Étranger", "O´Brien, Sean")
    assert find_same_works([work]) == {work: dict.fromkeys(pks, True)}


def test_pairs_are_compared_again_once_their_books_change() -> None:
    books = [create_book(title="Emma") for _ in range(3)]
    pairs = count_pairs()["pairs"]
    change_book(books[0], available=False)
    assert len(check_pairs(pairs)) == 3
    change_book(books[0], title="Persuasion")
    assert check_pairs(pairs) == [(books[1].pk, books[2].pk)]
    delete_book(books[1])
    assert check_pairs(pairs) == []
    # As an earlier release stored them.
    assert check_pairs([[books[0].pk, books[2].pk], [books[2].pk, books[2].pk]]) == [(books[2].pk, books[2].pk)]
