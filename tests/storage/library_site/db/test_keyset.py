"""Pages that begin beyond a key: numbers stand for rows."""

from itertools import product

import pytest
from django.db.models import F

from books.models import Actor
from library_site.db.keyset import Key, Order, Page, Start, cut_page

ROWS = list(range(1, 8))


def get_key(row: int) -> Key:
    return (row,)


def read(start: Start, limit: int, rows: list[int] = ROWS) -> Page[int]:
    """Returns a page of a list of the rows."""
    read_rows = rows[::-1] if start.backward else rows
    if start.key:
        [number] = start.key
        read_rows = [row for row in read_rows if (row < number if start.backward else row > number)]
    return cut_page(read_rows[: limit + 1], limit, start, get_key)


@pytest.mark.parametrize("limit", [1, 3, 7])
def test_pages_lead_through_the_list_and_back(limit: int) -> None:
    pages = [read(Start(), limit)]
    while pages[-1].next_key:
        pages.append(read(Start(pages[-1].next_key), limit))
    assert ([row for page in pages for row in page.rows], pages[0].previous_key) == (ROWS, None)
    page = pages[-1]
    for earlier in pages[-2::-1]:
        page = read(Start(page.previous_key, backward=True), limit)
        assert page.rows == earlier.rows
    assert page.previous_key is None


def test_an_empty_page_leads_back_to_the_row_of_its_key() -> None:
    """The row may still be there: only what is beyond it is gone."""
    page = read(Start((7,)), 2)
    assert page == Page([], previous_key=(8,))
    assert read(Start(page.previous_key, backward=True), 2).rows == [6, 7]
    page = read(Start((1,), backward=True), 2)
    assert page == Page([], next_key=(0,))
    assert read(Start(page.next_key), 2).rows == [1, 2]


def test_the_last_page_is_read_from_the_end_and_an_empty_list_leads_nowhere() -> None:
    assert read(Start(backward=True), 2) == Page([6, 7], (6,), None)
    assert read(Start(), 2, rows=[]) == Page([])


@pytest.mark.django_db
@pytest.mark.parametrize("descending", [False, True])
@pytest.mark.parametrize("names", [["app_name"], ["channel", "app_name"]])
def test_rows_beyond_a_key_have_it_neither_before_nor_among_them(names: list[str], descending: bool) -> None:
    Actor.objects.all().delete()
    Actor.objects.bulk_create(
        Actor(channel=channel, app_name=name, identity=channel + name) for channel, name in product("ab", "xyz")
    )
    order, actors = Order(*map(F, names)), Actor.objects.values_list(*names)
    rows = list(order.sort(actors, descending=descending))
    for row in rows:
        last = max(index for index, other in enumerate(rows) if other == row)
        assert list(order.sort(actors, Start(row), descending=descending)) == rows[last + 1 :]
