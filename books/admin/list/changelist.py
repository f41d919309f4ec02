"""The list of books. Its address contains the search, filters, order and cursor."""

from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import Any, Literal, NamedTuple
from urllib.parse import parse_qsl

from django.contrib.admin.views.main import ChangeList
from django.db.models import QuerySet
from django.http import HttpRequest
from django.utils import timezone
from django.utils.functional import cached_property
from django.utils.translation import gettext as _

from books.admin.descriptions import LENT_STATE, STATES, Link
from books.admin.list.facets import (
    Facet,
    FacetRow,
    count_facets,
    find_known_count,
    list_facets,
    read_counts,
    read_facet_rows,
)
from books.admin.list.filters import (
    ListFilterForm,
    build_list_condition,
    change_query,
    describe_filter_values,
    list_similar_searches,
    resolve_filters,
)
from books.admin.list.settings import LIST_COLUMNS, read_settings
from books.models import Book, Summary
from books.search.lent_books import AVAILABILITY_CONDITIONS
from books.search.matches import build_search
from books.search.scans import read_scan
from books.search.sections import POSITION, SORT_KEYS, Section, find_key, find_start, parse_position, read_sections
from books.summaries import BOOKS, find_count_time, read_summary
from library_site.admin.badges import format_badge
from library_site.admin.moments import format_date
from library_site.admin.paginator import BoundedCount
from library_site.db.integers import parse_integer
from library_site.db.keyset import Page, Start

# Lent books and available books are each read in the order of an index.
AVAILABILITY_SECTIONS = [Section(AVAILABILITY_CONDITIONS[False]), Section(AVAILABILITY_CONDITIONS[True])]
# No library has more pages, and a larger number would overflow in the database.
MAX_PAGE_NUMBER = 10_000_000
# A filtered list counts at most so many books.
MAX_LISTED_COUNT = 1_000
# A search that finds so many books may be misspelled.
MAX_FEW = 3


class Header(NamedTuple):
    """The header of a column, and the address of the list sorted by it. `direction` is a value of `aria-sort`."""

    name: str
    text: str
    address: str
    direction: str


class BookList(ChangeList):
    """The `result_list` is one page. The queryset of an action contains the books of all pages."""

    def __init__(self, request: HttpRequest, *arguments: Any, **options: Any) -> None:
        columns, self.rows = read_settings(request)
        self.columns = [name for name in LIST_COLUMNS if name in columns]
        self.now = timezone.now()
        super().__init__(request, *arguments, **options)

    def get_queryset(self, request: HttpRequest, exclude_parameters: Any = None) -> QuerySet[Book]:
        self.address_query = request.GET
        self.filter_specs, self.has_filters = [], False
        self.scan = read_scan(self.query)
        self.search = build_search(self.scan)
        self.filter_form = ListFilterForm(request.GET)
        values = resolve_filters(request.GET, self.now)
        self.root_queryset = self.root_queryset.order_by()
        self.filtered_books = self.root_queryset.filter(build_list_condition(values))
        self.filter_form.full_clean()
        cleaned = self.filter_form.cleaned_data
        self.active_filters = {name: value for name, value in cleaned.items() if value not in (None, "")}
        self.has_active_filters = bool(self.active_filters)
        return self.filtered_books.filter(self.search.condition)

    def get_results(self, request: HttpRequest) -> None:
        self.page_number: int | None = read_page_number(request)
        self.page = self.read_page(request)
        self.result_list = self.page.rows
        self.result_count = self.count_listed(request)
        self.full_result_count, self.show_full_result_count = None, False
        self.show_admin_actions, self.can_show_all = True, False
        self.multi_page = self.result_count > len(self.result_list)

    def count_listed(self, request: HttpRequest) -> int:
        """Returns a BoundedCount where counting takes too long, unless the user asks for the exact number."""
        if not self.page.previous_key and not self.page.next_key and self.result_list:
            return len(self.result_list)
        if not self.is_narrowed:
            return int(self.summary.numbers["books"])
        if "exact" in request.GET:
            return int(self.queryset.order_by().count())
        count = len(self.facet_rows)
        if count <= MAX_LISTED_COUNT:
            return count
        is_known = self.known_count is not None and self.known_count > MAX_LISTED_COUNT
        return self.known_count or 0 if is_known else BoundedCount(MAX_LISTED_COUNT)

    @cached_property
    def known_count(self) -> int | None:
        """The number that the menus of the whole list show for this list, None if it is no choice of theirs."""
        return None if self.query else find_known_count(read_counts(self.summary.numbers), self.active_filters)

    @cached_property
    def facet_rows(self) -> list[FacetRow]:
        """Reads one row more than it counts, to know whether there are more."""
        return read_facet_rows(self.queryset, MAX_LISTED_COUNT + 1)

    @cached_property
    def summary(self) -> Summary:
        return read_summary(BOOKS, self.now)

    @property
    def similar_searches(self) -> list[Link]:
        """Other searches, if this one has few matches or none in the whole library."""
        has_many = self.has_active_filters or self.result_count > MAX_FEW
        return [] if has_many else list_similar_searches(self.scan)

    @property
    def is_narrowed(self) -> bool:
        return bool(self.has_active_filters or self.query)

    def read_page(self, request: HttpRequest) -> Page[Book]:
        sections = self.list_sections()
        if self.is_narrowed and len(self.facet_rows) <= MAX_LISTED_COUNT:
            # In the order of the list, the database would read an index past all other books.
            self.filtered_books = self.root_queryset.filter(pk__in=[row[0] for row in self.facet_rows])
        return read_sections(self.filtered_books, sections, self.rows, self.find_start(request, sections))

    def find_start(self, request: HttpRequest, sections: Sequence[Section]) -> Start:
        backward = "before" in request.GET or "last" in request.GET
        key = parse_position(request.GET.get("before" if backward else "behind", ""), sections)
        if key or backward or not self.page_number:
            return Start(key, backward)
        start = find_start(self.filtered_books, sections, (self.page_number - 1) * self.rows)
        if start is None:
            self.page_number = None
            return Start(backward=True)
        return start

    def find_neighbours(self, pk: int) -> list[Book | None]:
        """Returns the books before and after this one, each None beyond an end of the list."""
        sections = self.list_sections()
        if not (key := find_key(sections, pk)):
            return [None, None]
        pages = [read_sections(self.filtered_books, sections, 1, Start(key, backward)) for backward in (True, False)]
        return [page.rows[0] if page.rows else None for page in pages]

    @property
    def page_count(self) -> int | None:
        if isinstance(self.result_count, BoundedCount):
            return None
        return max(1, -(-self.result_count // self.rows))

    @property
    def shown_page(self) -> int | None:
        """The number of this page. The last page takes the number of pages."""
        is_last = self.page_number is None and not self.page.next_key
        return self.page_count if is_last else self.page_number

    @property
    def exact_address(self) -> str:
        return self.build_address(exact=1) if isinstance(self.result_count, BoundedCount) else ""

    @property
    def counted_at(self) -> datetime | None:
        """The time at which all books were counted, None if it is now."""
        is_counted = not self.is_narrowed or (self.known_count is not None and self.result_count == self.known_count)
        return find_count_time(self.summary, self.now) if is_counted else None

    def list_facets(self) -> Iterator[Facet]:
        """Too many books to count have the choices of the whole list, without numbers."""
        is_counted = self.is_narrowed and self.result_count <= MAX_LISTED_COUNT and not self.exact_address
        counts = count_facets(self.facet_rows, self.now.date()) if is_counted else read_counts(self.summary.numbers)
        shows_counts = is_counted or not self.is_narrowed
        return list_facets(counts, self.active_filters, self.build_address, shows_counts=shows_counts)

    def list_chips(self) -> list[Link]:
        """Returns the active filters except the search, with links to the list without them."""
        sentences = describe_filter_values(self.active_filters)
        return [Link(text, self.build_address(**dict.fromkeys(names, ""))) for names, text in sentences]

    def list_rows(self) -> Iterator[tuple[Book, list[tuple[str, Any]]]]:
        """Yields each book with the CSS classes and contents of its cells, without the first cell, the link."""
        for book in self.result_list:
            yield book, [(f"field-{name}_column", format_cell(book, name)) for name in self.columns if name != "title"]

    def list_sections(self) -> Sequence[Section]:
        """Without an explicit order, the best matches come first."""
        sort = self.read_sort()
        if not sort:
            return self.search.sections
        condition, name = self.search.condition, sort.removeprefix("-")
        if name != "availability":
            return [Section(condition, sort)]
        sections = [Section(section.condition & condition) for section in AVAILABILITY_SECTIONS]
        return sections[:: -1 if sort.startswith("-") else 1]

    def read_sort(self) -> str:
        sort: str = self.params.get("sort", "")
        return sort if sort.removeprefix("-") in (*SORT_KEYS, "availability") else ""

    def get_ordering_field_columns(self) -> dict[int, Literal["desc", "asc"]]:
        """Django sorts by the number of a column, but the numbers change when a user hides columns."""
        return {}

    def list_headers(self) -> Iterator[Header]:
        sort = self.read_sort()
        for name in self.columns:
            next_sort = f"-{name}" if sort == name else name
            direction = {name: "ascending", f"-{name}": "descending"}.get(sort, "")
            yield Header(name, str(LIST_COLUMNS[name]), self.build_address(sort=next_sort), direction)

    def list_page_links(self) -> Iterator[Link]:
        """Yields the links to other pages; none if there is only one page."""
        before, behind, number = self.page.previous_key, self.page.next_key, self.shown_page
        if before or "before" in self.params or "behind" in self.params:
            yield Link(_("First page"), self.build_address())
        if before:
            parameters = {"before": POSITION.encode(before), "page": number - 1 if number and number > 1 else ""}
            yield Link(_("Previous page"), self.build_address(**parameters))
        if behind:
            parameters = {"behind": POSITION.encode(behind), "page": number + 1 if number else ""}
            yield Link(_("Next page"), self.build_address(**parameters))
            yield Link(_("Last page"), self.build_address(last=1))

    def build_address(self, **changes: Any) -> str:
        return f"?{change_query(self.address_query, **changes)}"

    @property
    def list_query(self) -> str:
        """The query of the list without its cursor."""
        return change_query(self.address_query)

    @property
    def list_parameters(self) -> list[tuple[str, str]]:
        return parse_qsl(self.list_query)

    def list_column_choices(self) -> Iterator[tuple[str, str, bool]]:
        """Yields the name and label of each column that can be hidden, and whether it is visible."""
        for name, label in LIST_COLUMNS.items():
            if name != "title":
                yield name, str(label), name in self.columns


def format_cell(book: Book, name: str) -> str:
    if name == "availability":
        # Most books are available, so the page says only which are lent.
        return "" if book.available else format_badge(STATES[LENT_STATE], "warning")
    if name == "created_at":
        return format_date(book.created_at)
    return f"#{book.pk}" if name == "id" else str(getattr(book, name))


def read_page_number(request: HttpRequest) -> int | None:
    """Returns the number in the address, 1 for the first page, None if the cursor's page number is unknown."""
    number = parse_integer(request.GET.get("page", ""))
    if number and 0 < number <= MAX_PAGE_NUMBER:
        return number
    return None if {"before", "behind", "last", "page"} & request.GET.keys() else 1
