"""The list of books: its search, filters, order and pages, its columns, and the views that a person saves."""

from inspect import signature
from typing import Any

import pytest
from django.contrib import admin
from django.contrib.admin.views.main import ChangeList
from django.contrib.auth.models import User
from django.db import connection
from django.test import Client, RequestFactory
from django.test.utils import CaptureQueriesContext

from books.admin.list import changelist, settings
from books.models import Book, ListSettings, Operation, SavedView
from tests.support.admin_pages import follow_link, read_text, read_words
from tests.support.books_admin import LIST, change_book, create_book

COLUMNS = f"{LIST}columns/"
SAVE_VIEW = f"{LIST}views/save/"
DELETE_VIEW = f"{LIST}views/delete/"
DEFAULT_VIEW = f"{LIST}views/default/"


def list_titles(client: Client, **query: Any) -> list[str]:
    return [book.title for book in client.get(LIST, query).context["cl"].result_list]


def list_links(response: Any) -> dict[str, str]:
    return {link.text: f"{LIST}{link.address}" for link in response.context["cl"].list_page_links()}


def list_headers(response: Any) -> dict[str, Any]:
    return {header.text: header for header in response.context["cl"].list_headers()}


@pytest.fixture
def three_books(db: None) -> None:
    create_book(title="Germinal", author="Émile Zola", year=1885, genre="Novel", isbn="978-0-14-044742-2")
    create_book(title="Nana", author="Émile Zola", year=1880, genre="novel", isbn="nana")
    change_book(create_book(title="Beowulf", author="unknown", year=1000, genre="Poetry"), available=False)


LISTS: list[tuple[dict[str, Any], list[str]]] = [
    ({}, ["Beowulf", "Nana", "Germinal"]),
    ({"author": "zola émile"}, ["Nana", "Germinal"]),
    ({"genre": "NOVEL"}, ["Nana", "Germinal"]),
    ({"genre": "nov"}, []),
    ({"year_from": 1880, "year_to": 1880}, ["Nana"]),
    ({"availability": "lent"}, ["Beowulf"]),
    ({"quality": "year"}, ["Beowulf"]),
    ({"quality": "no_isbn", "author": "Zola", "q": "na"}, ["Nana"]),
    ({"sort": "title"}, ["Beowulf", "Germinal", "Nana"]),
    ({"sort": "-year"}, ["Germinal", "Nana", "Beowulf"]),
    ({"sort": "isbn", "author": "Zola"}, ["Germinal", "Nana"]),
    ({"sort": "-availability"}, ["Nana", "Germinal", "Beowulf"]),
    ({"sort": "nothing"}, ["Beowulf", "Nana", "Germinal"]),
    ({"q": "9780140447422"}, ["Germinal"]),
    ({"q": "ÉMILE germ"}, ["Germinal"]),
    ({"q": "%"}, []),
]


@pytest.mark.usefixtures("three_books")
def test_lists_are_filtered_and_sorted_by_their_address(librarian: Client) -> None:
    assert [(query, list_titles(librarian, **query)) for query, _titles in LISTS] == LISTS
    for title in ("émile", "Zadig", "emma"):
        create_book(title=title)
    assert list_titles(librarian, sort="-title")[:3] == ["émile", "Zadig", "Nana"]


def test_a_search_with_few_matches_or_none_proposes_others(librarian: Client) -> None:
    create_book(title="<b>Emmanuelle</b>")
    for title in ("Jane Austin", "Jane Austen"):
        create_book(title=title)
    page = librarian.get(f"{LIST}?q=jane+austin")
    found = follow_link(librarian, page, "Jane Austen")
    assert "Jane Austen" in [book.title for book in found.context["cl"].result_list]
    for address in (f"{LIST}?q=emanuelle", f"{LIST}scan/?code=emanuelle"):
        page = librarian.get(address)
        assert "Did you mean" in read_words(page)
        found = follow_link(librarian, page, "&lt;b&gt;Emmanuelle&lt;/b&gt;")
        assert [book.title for book in found.context["cl"].result_list] == ["<b>Emmanuelle</b>"]
    for address in (f"{LIST}?q=emanuelle&year_to=3000", f"{LIST}?q=9780141439518", f"{LIST}?q=xxxxxx"):
        assert "Did you mean" not in read_words(librarian.get(address)), address


def test_the_best_matches_of_a_search_come_first(librarian: Client) -> None:
    for title in ("Emma", "Dear Emma", "Emmaus"):
        create_book(title=title)
    assert list_titles(librarian, q="emma") == ["Emma", "Emmaus", "Dear Emma"]
    assert list_titles(librarian, q="emma", sort="title") == ["Dear Emma", "Emma", "Emmaus"]


@pytest.mark.parametrize(("counted", "reads_ids"), [(3, True), (2, False)])
def test_few_books_are_read_by_their_ids_whatever_the_order(
    librarian: Client, monkeypatch: pytest.MonkeyPatch, counted: int, reads_ids: bool
) -> None:
    """Along the index of the order, a million other books come before them."""
    monkeypatch.setattr("books.admin.list.changelist.MAX_LISTED_COUNT", counted)
    for title in ("Emma", "Ada", "Emmaus"):
        create_book(title=title, year=12)
    for query, is_narrowed in (({"quality": "year"}, True), ({}, False)):
        with CaptureQueriesContext(connection) as queries:
            assert list_titles(librarian, sort="-title", **query) == ["Emmaus", "Emma", "Ada"]
        [statement] = [row["sql"] for row in queries if '"sort_key"' in row["sql"]]
        assert ('"id" IN (' in statement) is (reads_ids and is_narrowed)


def test_an_invalid_filter_is_explained(librarian: Client) -> None:
    create_book(title="Emma")
    texts = {"year_from": "x", "year_to": "9" * 40, "quality": "x", "added_since": "x", "author": "\0"}
    for name, text in texts.items():
        response = librarian.get(LIST, {name: text})
        assert 'class="errorlist"' in read_text(response), name
        assert [book.title for book in response.context["cl"].result_list] == ["Emma"], name


@pytest.mark.usefixtures("three_books")
def test_a_column_is_sorted_by_its_head_and_back(librarian: Client) -> None:
    header = list_headers(librarian.get(LIST, {"genre": "novel"}))["Year"]
    assert (header.address, header.direction) == ("?genre=novel&sort=year", "")
    response = librarian.get(f"{LIST}{header.address}")
    header = list_headers(response)["Year"]
    assert (header.address, header.direction) == ("?genre=novel&sort=-year", "ascending")
    assert 'aria-sort="ascending"' in read_text(response)


@pytest.mark.usefixtures("three_books")
def test_columns_and_rows_are_chosen_and_remembered(librarian: Client) -> None:
    form = {"columns": ["year", "id"], "rows": 100, "query": "genre=novel&behind=x&o=1"}
    response = librarian.post(COLUMNS, form)
    assert response.headers["Location"] == f"{LIST}?genre=novel"
    changed = librarian.get(LIST)
    assert list(list_headers(changed)) == ["Title", "Year", "ID"]
    assert "An ISBN in any writing" in read_text(changed)
    librarian.post(COLUMNS, {"columns": ["availability"], "rows": 100})
    assert '<span class="badge warning">lent</span>' in read_text(librarian.get(LIST))
    assert 'class="field-author_column"' not in read_text(changed)
    assert ListSettings.objects.get().rows == 100


def test_other_columns_and_rows_are_refused(librarian: Client) -> None:
    for form in ({"columns": ["password"], "rows": 50}, {"columns": ["year"], "rows": 10_000}, {}):
        assert "Nothing was changed" in read_text(librarian.post(COLUMNS, form, follow=True))
    assert not ListSettings.objects.exists()


@pytest.mark.usefixtures("three_books")
def test_a_view_is_saved_with_its_columns_and_comes_back(librarian: Client, astrid: User) -> None:
    ListSettings.objects.create(user=astrid, columns=["isbn"], rows=50)
    librarian.post(SAVE_VIEW, {"name": "Novels", "query": "genre=novel&sort=year&password=x"})
    ListSettings.objects.update(columns=["author"])
    [(view, query, owner, is_default)] = librarian.get(LIST).context["saved_views"]
    assert (str(view), query, owner) == ("Novels", f"genre=novel&sort=year&view={view.pk}", "")
    assert not is_default
    response = librarian.get(f"{LIST}?{query}")
    assert [book.title for book in response.context["cl"].result_list] == ["Nana", "Germinal"]
    assert list(list_headers(response)) == ["Title", "ISBN"]


def test_a_view_with_the_same_name_is_replaced_and_deleted(librarian: Client) -> None:
    for query, shared in (("genre=a", {"is_shared": "on"}), ("genre=b", {})):
        librarian.post(SAVE_VIEW, {"name": "Mine", "query": query, **shared})
    view = SavedView.objects.get()
    assert (view.query, view.is_shared) == ("genre=b", False)
    librarian.post(DELETE_VIEW, {"view": view.pk})
    assert not SavedView.objects.exists()


def test_views_are_named_and_not_endless(librarian: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(settings, "MAX_VIEWS", 1)
    assert "Nothing was saved" in read_text(librarian.post(SAVE_VIEW, {"name": " "}, follow=True))
    librarian.post(SAVE_VIEW, {"name": "One"})
    assert "Nothing was saved" in read_text(librarian.post(SAVE_VIEW, {"name": "Two"}, follow=True))
    assert SavedView.objects.count() == 1


def test_a_shared_view_is_open_to_all_and_changed_by_its_owner_alone(librarian: Client, berta: User) -> None:
    librarian.post(SAVE_VIEW, {"name": "Novels", "query": "genre=novel", "is_shared": "on"})
    librarian.post(SAVE_VIEW, {"name": "Mine", "query": "genre=x"})
    view = SavedView.objects.get(name="Novels")
    librarian.force_login(berta)
    [link] = librarian.get(LIST).context["saved_views"]
    assert (link.view, link.query, link.owner) == (view, f"genre=novel&view={view.pk}", "astrid")
    librarian.post(DELETE_VIEW, {"view": view.pk})
    librarian.post(SAVE_VIEW, {"name": "Novels", "query": "genre=poetry"})
    assert SavedView.objects.get(pk=view.pk).query == "genre=novel"


def test_views_of_others_take_no_room_from_the_own_ones(librarian: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(settings, "MAX_SHOWN_VIEWS", 3)
    other = User.objects.create_user("other")
    for name in ("B", "A"):
        SavedView.objects.create(user=other, name=name, query="", columns=[], is_shared=True)
    for name in ("Z", "Y"):
        librarian.post(SAVE_VIEW, {"name": name})
    # The default one keeps its place.
    librarian.post(DEFAULT_VIEW, {"view": SavedView.objects.get(name="Z").pk})
    librarian.get(LIST)
    with CaptureQueriesContext(connection) as queries:
        response = librarian.get(LIST, {"all": 1})
    assert [link.view.name for link in response.context["saved_views"]] == ["Y", "Z", "A"]
    # The views, and the person's columns.
    assert (
        sum(
            "books_savedview" in query["sql"] or "books_listsettings" in query["sql"]
            for query in queries.captured_queries
        )
        == 2
    )


@pytest.mark.usefixtures("three_books")
def test_the_list_opens_with_the_view_that_a_person_chose(librarian: Client, astrid: User) -> None:
    librarian.post(SAVE_VIEW, {"name": "Novels", "query": "genre=novel"})
    ListSettings.objects.create(user=astrid, columns=["author"], rows=25)
    view = SavedView.objects.get()
    response = librarian.post(DEFAULT_VIEW, {"view": view.pk}, follow=True)
    assert "The list opens with the view “Novels”." in read_text(response)
    assert ListSettings.objects.values_list("columns", "rows").get() == (["author"], 25)
    opened = librarian.get(LIST, follow=True)
    assert opened.redirect_chain == [(f"{LIST}?genre=novel&view={view.pk}", 302)]
    assert opened.context["saved_views"][0].is_default
    assert list_titles(librarian, all=1) == ["Beowulf", "Nana", "Germinal"]
    assert "The list opens with all books." in read_text(librarian.post(DEFAULT_VIEW, follow=True))
    assert list_titles(librarian) == ["Beowulf", "Nana", "Germinal"]


def test_a_default_view_that_is_gone_or_not_shared_any_more_opens_nothing(
    librarian: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(settings, "MAX_SHOWN_VIEWS", 1)
    other = User.objects.create_user("other")
    SavedView.objects.create(user=other, name="Another", query="", columns=[], is_shared=True)
    view = SavedView.objects.create(user=other, name="Theirs", query="genre=a", columns=[], is_shared=True)
    librarian.post(DEFAULT_VIEW, {"view": view.pk})
    assert librarian.get(LIST).status_code == 302
    SavedView.objects.update(is_shared=False)
    assert librarian.get(LIST).status_code == 200
    SavedView.objects.all().delete()
    assert librarian.get(LIST).status_code == 200
    assert ListSettings.objects.get().default_view is None


def test_views_of_others_are_neither_shown_nor_deleted(librarian: Client) -> None:
    other = User.objects.create_user("other")
    view = SavedView.objects.create(user=other, name="Theirs", query="genre=a", columns=["isbn"])
    librarian.post(DELETE_VIEW, {"view": view.pk})
    response = librarian.get(LIST, {"view": view.pk})
    assert response.context["saved_views"] == []
    assert len(list_headers(response)) > 2
    assert SavedView.objects.exists()


def test_a_name_that_the_list_does_not_know_narrows_nothing_and_the_page_says_so(head: Client) -> None:
    """Otherwise an action takes more books than the address seems to choose."""
    create_book(title="Emma")
    query = "genr=Novel&q=emma&%3Cb%3E=1"
    mark = {"action": "mark_lent", "_selected_action": ["1"], "select_across": "1", "confirmed": "1"}
    for response in (
        head.get(f"{LIST}?{query}", follow=True),
        head.post(f"{LIST}?{query}", mark, follow=True),
        head.get(f"{LIST}export/?{query}&format=csv", follow=True),
    ):
        assert response.redirect_chain == [(f"{LIST}?q=emma", 302)]
        assert "has no filter “genr, &lt;b&gt;”, and shows the books without it." in read_text(response)
    refused = head.post(f"{LIST}bulk_edit/?{query}", {"change": "set", "genre": "Poetry"}, follow=True)
    assert "cannot read a filter of the list" in read_text(refused)
    assert not Operation.objects.exists()
    assert not Book.objects.filter(available=False).exists()


def list_choices(response: Any) -> dict[str, dict[str, int | None]]:
    return {
        facet.label: {choice.label: choice.books for choice in facet.choices}
        for facet in response.context["cl"].list_facets()
    }


@pytest.mark.usefixtures("three_books")
def test_facets_count_what_they_lead_to(librarian: Client) -> None:
    response = librarian.get(LIST)
    facets = list_choices(response)
    assert facets["Genre"] == {"Novel": 2, "Poetry": 1}
    assert facets["Decade"] == {"1880–1889": 2, "1000–1009": 1}
    assert facets["Availability"] == {"available": 2, "lent": 1}
    assert facets["To look at"]["no valid ISBN"] == 2
    for facet in response.context["cl"].list_facets():
        choice = facet.choices[0]
        if choice.books is not None:
            assert librarian.get(f"{LIST}{choice.address}").context["cl"].result_count == choice.books


@pytest.mark.usefixtures("three_books")
def test_facets_of_a_list_that_is_narrowed_count_its_books(librarian: Client) -> None:
    response = librarian.get(f"{LIST}?author=zola&year_to=1884")
    facets = list_choices(response)
    assert facets["Genre"] == {"novel": 1}
    # A genre is counted once, however it is written.
    assert list(list_choices(librarian.get(LIST, {"author": "zola"}))["Genre"].values()) == [2]
    assert facets["Availability"] == {"available": 1, "lent": 0}
    assert facets["To look at"] == {"no valid ISBN": 1, "improbable year": 0, "no genre": 0}
    create_book(title="Lais", year=1160, genre=" ", isbn="9780140447590")
    facets = list_choices(librarian.get(LIST, {"year_to": 1884}))
    assert facets["To look at"] == {"no valid ISBN": 2, "improbable year": 2, "no genre": 1}


@pytest.mark.usefixtures("three_books")
def test_facets_of_too_many_books_have_no_counts(librarian: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(changelist, "MAX_LISTED_COUNT", 1)
    facets = list_choices(librarian.get(f"{LIST}?author=zola&page=2"))
    assert facets["Genre"] == {"Novel": None, "Poetry": None}


CHIPS: list[tuple[dict[str, Any], dict[str, str]]] = [
    ({}, {}),
    ({"author": "zo", "sort": "year"}, {"Author contains “zo”": "?sort=year"}),
    ({"year_from": 1880, "year_to": 1889, "q": "a"}, {"1880–1889": "?q=a"}),
    ({"year_from": 0}, {"From 0": "?"}),
    ({"year_to": 5}, {"Up to 5": "?"}),
    ({"availability": "lent", "quality": "year"}, {"lent": "?quality=year", "improbable year": "?availability=lent"}),
    ({"added_since": "2026-11-03"}, {"Added since 3 Nov 2026": "?"}),
    ({"ids": "1,2"}, {"2 selected books": "?"}),
    ({"year_from": "x"}, {}),
]


def test_a_chip_says_what_narrows_the_list_and_takes_it_away(librarian: Client) -> None:
    def list_chips(query: dict[str, Any]) -> dict[str, str]:
        return {chip.text: chip.address for chip in librarian.get(LIST, query).context["cl"].list_chips()}

    assert [(query, list_chips(query)) for query, _chips in CHIPS] == CHIPS


@pytest.fixture
def seven_books(db: None, astrid: User) -> None:
    ListSettings.objects.create(user=astrid, columns=["year"], rows=2)
    for number in range(1, 8):
        create_book(title=f"Book {number}", year=number % 2)


@pytest.mark.usefixtures("seven_books")
def test_a_page_is_opened_by_its_number(librarian: Client) -> None:
    pages: list[tuple[dict[str, Any], list[int]]] = [
        *(({"page": number}, books) for number, books in ((3, [3, 2]), (4, [1]), (5, [2, 1]))),
        *(({"page": text}, [7, 6]) for text in (10_000_001, "x")),
        ({"page": 2, "sort": "year"}, [6, 1]),
        ({"page": 2, "sort": "-availability"}, [5, 4]),
        ({"page": 2, "q": "book"}, [3, 4]),
    ]
    titles = [(query, [f"Book {number}" for number in numbers]) for query, numbers in pages]
    assert [(query, list_titles(librarian, **query)) for query, _numbers in pages] == titles
    # Its rows may begin in a later part of the order.
    change_book(Book.objects.get(title="Book 1"), available=False)
    assert list_titles(librarian, page=2, sort="availability") == ["Book 6", "Book 5"]


@pytest.mark.usefixtures("seven_books")
def test_pages_go_to_the_end_know_their_numbers_and_keep_the_filters(librarian: Client) -> None:
    create_book(title="Persuasion")
    response, pages = librarian.get(LIST, {"q": "book", "sort": "title"}), []
    assert list(list_links(response)) == ["Next page", "Last page"]
    while True:
        page = response.context["cl"]
        pages.append((page.shown_page, page.page_count, [book.title[-1] for book in page.result_list]))
        if "Next page" not in list_links(response):
            break
        response = librarian.get(list_links(response)["Next page"])
    assert pages == [(1, 4, ["1", "2"]), (2, 4, ["3", "4"]), (3, 4, ["5", "6"]), (4, 4, ["7"])]
    assert list(list_links(response)) == ["First page", "Previous page"]
    assert librarian.get(list_links(response)["Previous page"]).context["cl"].shown_page == 3
    last = librarian.get(list_links(librarian.get(list_links(response)["First page"]))["Last page"]).context["cl"]
    assert (last.shown_page, [book.title for book in last.result_list]) == (4, ["Book 6", "Book 7"])
    assert librarian.get(LIST, {"page": 99}).context["cl"].shown_page == 4


@pytest.mark.usefixtures("three_books")
def test_selected_books_or_all_of_the_list_are_edited(head: Client, astrid: User) -> None:
    pks = [str(book.pk) for book in Book.objects.exclude(title="Nana").order_by("pk")]
    form = {"action": "edit_books", "_selected_action": pks}
    response = head.post(LIST, form)
    assert response["Location"] == f"/admin/books/book/bulk_edit/?ids={'%2C'.join(pks)}"
    words = read_text(head.get(response["Location"]))
    assert ["2 books" in words, "2 selected books" in words] == [True, True]
    response = head.post(f"{LIST}?genre=novel", {**form, "select_across": "1"})
    assert response["Location"] == "/admin/books/book/bulk_edit/?genre=novel"
    # Librarians who may not edit many books do not find the action.
    head.force_login(astrid)
    names = [name for name, _label in head.get(LIST).context["action_form"].fields["action"].choices]
    assert [name in names for name in ("edit_books", "mark_lent", "delete_selected")] == [False, True, False]


@pytest.mark.usefixtures("three_books")
def test_ids_that_are_none_narrow_nothing_and_are_refused_by_the_bulk_edit(head: Client) -> None:
    for ids in ("x", "1,,2", "9" * 30, "1;2"):
        assert len(list_titles(head, ids=ids)) == 3
        assert head.get(f"/admin/books/book/bulk_edit/?ids={ids}").status_code == 302


def test_the_list_takes_the_arguments_of_a_change_list_by_name(rf: RequestFactory, db: None) -> None:
    """As django-import-export passes them."""
    book, request, model_admin = create_book(), rf.get(LIST), admin.site.get_model_admin(Book)
    request.user = User.objects.create_superuser("root")
    names = signature(ChangeList).parameters.keys() - {"request"}
    arguments = {name: getattr(model_admin, name, model_admin) for name in names}
    assert [*changelist.BookList(request=request, **arguments).get_queryset(request)] == [book]
