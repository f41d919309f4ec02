"""Possible duplicates: which pairs are listed, that others are forgotten, and how two books become one."""

import re
from datetime import timedelta
from html import unescape
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone

from books import summaries
from books.models import Book, Change, DistinctBooks, Operation
from books.search.duplicates import Pair, mark_distinct
from tests.support.admin_pages import follow_link, read_inputs, read_text, read_words
from tests.support.books_admin import LIST, RECENT_CHANGES, change_book, create_book, delete_book, history_address
from tests.support.operations import run_operations

DUPLICATES = f"{LIST}duplicates/"
FIELDS = ("title", "author", "year", "isbn", "genre", "available")


def list_pairs(response: Any) -> list[tuple[int, int]]:
    return [tuple(row["pair"]) for row in response.context["pairs"]]


def merge_address(*books: Book) -> str:
    return f"{DUPLICATES}merge/?pair={'-'.join(str(book.pk) for book in books)}"


def merge(client: Client, first: Book, second: Book, **choices: Any) -> Any:
    """Opens the page of both, and submits it with these choices; otherwise those of the page, the older book's."""
    page = client.get(merge_address(first, second))
    form, lines = read_inputs(read_text(page)), page.context["lines"]
    values = {f"member_{line['name']}": pk for line in lines for pk, _, is_chosen in line["values"] if is_chosen}
    return client.post(merge_address(first, second), {**form, "kept": first.pk, **values, **choices}, follow=True)


def test_pairs_with_the_same_isbn_or_title_are_listed_in_pages(head: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("books.admin.operations.duplicates.PAIRS_OF_A_PAGE", 2)
    books = [
        create_book(title=f"T{number}", isbn=isbn)
        for number, isbn in enumerate(["9780141439518", "0141439513", "978-0-14-143951-8"])
    ]
    same = [create_book(title=title, author="Ö" * 200) for title in ("É" * 150, "é" * 150, "é" * 151)]
    page = head.get(DUPLICATES)
    assert list_pairs(page) == [(books[0].pk, books[1].pk), (books[0].pk, books[2].pk)]
    page = follow_link(head, page, "Next page")
    assert list_pairs(page) == [(books[1].pk, books[2].pk), (same[0].pk, same[1].pk)]
    assert [row["reason"] for row in page.context["pairs"]] == ["same ISBN", "same title and author"]


class TestLargeLibrary:
    """The pairs were found by the worker, a while ago."""

    @pytest.fixture(autouse=True)
    def _large_library(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(summaries, "LIVE_SECONDS", -1)

    def test_pairs_are_listed_while_they_are_some(self, head: Client) -> None:
        same = [create_book(title=title) for title in ("Emma", "emma", "EMMA", "Emma", "Ema", "Ema")]
        assert len(list_pairs(head.get(DUPLICATES))) == 7
        delete_book(same[0])
        change_book(same[1], title="Persuasion")
        change_book(same[4], author="Somebody")
        head.post(DUPLICATES, {"pair": f"{same[2].pk}-{same[3].pk}"})
        create_book(title="Ema")
        page = head.get(DUPLICATES)
        assert list_pairs(page) == []
        assert "The books were compared" in read_words(page)
        summaries.refresh_summaries(timezone.now() + timedelta(hours=1))
        assert list_pairs(head.get(DUPLICATES)) == [(same[5].pk, same[5].pk + 1)]

    def test_pairs_that_are_none_leave_room_for_others(self, head: Client, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("books.search.duplicates.MAX_PAIRS", 0)
        books = [create_book(title=title) for title in ("Emma", "Emma", "Ema", "Ema")]
        mark_distinct(Pair(books[0].pk, books[1].pk))
        assert list_pairs(head.get(DUPLICATES)) == [(books[2].pk, books[3].pk)]


def test_pairs_of_mixed_groups_come_in_the_order_of_their_ids(head: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    """The next page begins behind a pair: another order would lose some."""
    monkeypatch.setattr("books.admin.operations.duplicates.PAIRS_OF_A_PAGE", 2)
    pks = [create_book(title=title).pk for title in ("Emma", "Ema", "Ema", "Emma", "Emma")]
    pages = [head.get(DUPLICATES)]
    for words in ("Next page", "Previous page"):
        pages.append(follow_link(head, pages[-1], words))
    first, second = [(pks[0], pks[3]), (pks[0], pks[4])], [(pks[1], pks[2]), (pks[3], pks[4])]
    assert [list_pairs(page) for page in pages] == [first, second, first]


def test_what_is_no_duplicate_is_listed_no_more(head: Client) -> None:
    books = [create_book(isbn=isbn) for isbn in ("9780141439518", "0141439513")]
    pair = f"{books[0].pk}-{books[1].pk}"
    for text in (pair, pair):
        assert "not listed as duplicates any more" in read_words(head.post(DUPLICATES, {"pair": text}, follow=True))
    gone = f"{books[1].pk}-{books[1].pk + 1}"
    for text in (gone, "", f"{books[1].pk}-{books[0].pk}", "1-2-3", "9" * 40 + "-1"):
        page = head.post(DUPLICATES, {"pair": text}, follow=True)
        assert "One of the books is not there any more." in read_words(page), text
    assert list_pairs(head.get(DUPLICATES)) == []
    assert list(DistinctBooks.objects.values_list("first_id", "second_id")) == [(books[0].pk, books[1].pk)]


def test_each_pair_leads_to_the_next(head: Client) -> None:
    first, second, third, fourth = (create_book(title="Emma") for _ in range(4))
    page = merge(head, first, second)
    assert "The two books are one now: Emma " in read_words(page)
    assert page.context["books"] == [first, third]
    assert "3 pairs to look at" in read_words(page)
    assert page.context["next_address"].endswith(f"={first.pk}-{fourth.pk}")
    page = head.post(merge_address(first, third), {"distinct": "yes"}, follow=True)
    assert page.context["books"] == [first, fourth]
    page = head.post(merge_address(third, fourth), {"distinct": "yes"}, follow=True)
    assert page.context["books"] == [first, fourth]
    assert not page.context["next_address"]
    page = head.post(merge_address(first, fourth), {"distinct": "yes"}, follow=True)
    assert "No two books seem to be the same." in read_words(page)


@pytest.mark.parametrize("is_in_list", [True, False])
def test_the_message_takes_the_mark_of_a_pair_back(head: Client, is_in_list: bool) -> None:
    first, second, third, fourth = (create_book(title="Emma") for _ in range(4))
    address = DUPLICATES if is_in_list else merge_address(second, third)
    page = head.post(address, {"pair": f"{second.pk}-{third.pk}", "distinct": "yes"}, follow=True)
    [undo] = re.findall('<button form="message-form" formaction="([^"]+)"', read_text(page))
    for pair in ((first, third), (second, fourth)):
        head.post(merge_address(*pair), {"distinct": "yes"})
    head.get(unescape(undo))
    assert DistinctBooks.objects.count() == 3
    assert head.post(unescape(undo), follow=True).context["books"] == [second, third]
    assert set(DistinctBooks.objects.values_list("first_id", "second_id")) == {
        (first.pk, third.pk),
        (second.pk, fourth.pk),
    }


def test_books_are_merged_field_by_field_and_both_histories_show_it(head: Client) -> None:
    kept, other = create_book(title="Ema", isbn="I-1", year=1815), create_book(title="Emma", isbn="I-2", year=1816)
    merge(head, kept, other, member_title=str(other.pk), member_isbn=str(other.pk))
    page = head.get(history_address(kept))
    assert list(Book.objects.values_list("pk", "title", "isbn", "year")) == [(kept.pk, "Emma", "I-2", 1815)]
    assert f'Merged into this book: <a href="{history_address(other)}">Book {other.pk}</a>' in read_text(page)
    assert f'into <a href="{history_address(kept)}">Book {kept.pk}</a>' in read_text(head.get(history_address(other)))
    change = Change.objects.get(book_id=other.pk, version=2)
    assert (change.kind, change.after) == (Change.Kind.MERGED, {"merged_into": kept.pk})
    changes_address = f"{RECENT_CHANGES}?kind=merged&operation={change.operation_id}"
    for response in (head.get(history_address(other)), head.get(changes_address)):
        assert "<td>I-2</td>" in read_text(response)
        assert '<th scope="col">After</th>' not in read_text(response)
        assert "None" not in read_words(response)


def test_a_merge_is_undone(head: Client) -> None:
    kept, other = create_book(isbn="I-1"), create_book(isbn="I-2", genre="Poem")
    before = list(Book.objects.order_by("pk").values_list("pk", *FIELDS))
    page = merge(head, kept, other, member_isbn=str(other.pk), member_genre=str(other.pk))
    undo = f"{LIST}operations/{Operation.objects.get().pk}/undo/"
    assert f'formaction="{undo}"' in read_text(page)
    head.post(undo)
    run_operations()
    assert list(Book.objects.order_by("pk").values_list("pk", *FIELDS)) == before


def test_the_younger_book_can_be_kept(head: Client) -> None:
    older, younger = create_book(), create_book()
    merge(head, older, younger, kept=younger.pk, **{f"member_{name}": younger.pk for name in FIELDS})
    assert Book.objects.get().pk == younger.pk
    assert Operation.objects.get().changed == 1


def test_what_changed_since_the_page_is_not_merged(head: Client) -> None:
    kept, other = create_book(), create_book()
    form = read_inputs(read_text(head.get(merge_address(kept, other))))
    choices = {f"member_{name}": str(kept.pk) for name in FIELDS}
    change_book(other, year=1)
    response = head.post(merge_address(kept, other), {**form, "kept": kept.pk, **choices}, follow=True)
    assert "Nothing was changed. Somebody else changed the book in the meantime." in read_words(response)
    delete_book(other)
    response = head.post(merge_address(kept, other), {**form, "kept": kept.pk, **choices}, follow=True)
    assert "not there any more" in read_text(response)
    assert Book.objects.count() == 1


def test_a_form_that_is_not_valid_merges_nothing(head: Client) -> None:
    first, second = create_book(), create_book()
    for choices in ({"kept": "999"}, {"member_title": "x"}, {"member_isbn": "\0"}):
        assert "Choose a book for each field." in read_text(merge(head, first, second, **choices)), choices
    assert Book.objects.count() == 2
