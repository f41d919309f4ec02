"""The list of books: searched, filtered and sorted by its address, in pages whose positions are keys."""

from collections.abc import Collection, Iterator, Sequence
from typing import Any, Literal, NamedTuple
from urllib.parse import parse_qsl

from django.contrib.admin.views.main import ChangeList
from django.db.models import Q, QuerySet
from django.http import HttpRequest
from django.utils import timezone
from django.utils.translation import gettext as _

from books.admin.list.filters import ListFilterForm, build_list_condition, change_query, resolve_filters
from books.admin.list.settings import LIST_COLUMNS, ROWS_OF_A_PAGE, read_settings
from books.files.formats.registry import STREAMED_FORMATS, XLSX, Format
from books.models import Book
from books.search.matches import build_search
from books.search.scans import read_scan
from books.search.sections import SORT_KEYS, Position, Section, parse_position, read_page
from library_site.admin.paginator import count_rows
from library_site.db.keyset import Page, Start

# Lent books and the others are each in the order of an index.
AVAILABILITY_SECTIONS = [Section(Q(available=False)), Section(Q(available=True))]


class Header(NamedTuple):
    """The head of a column, and the address of the list sorted by it. `direction` is as in `aria-sort`."""

    text: str
    address: str
    direction: str


class PageLink(NamedTuple):
    text: str
    address: str


class BookList(ChangeList):
    """Its `result_list` is a page. The queryset that actions get has the books of all pages."""

    def __init__(self, request: HttpRequest, model: Any, list_display: Sequence[str], *arguments: Any) -> None:
        self.settings = read_settings(request)
        hidden = {method for name, method in LIST_COLUMNS.items() if name not in self.settings.columns}
        super().__init__(request, model, [name for name in list_display if name not in hidden], *arguments)

    def get_queryset(self, request: HttpRequest, exclude_parameters: Any = None) -> QuerySet[Book]:
        self.address_query = request.GET
        self.filter_specs, self.has_filters = [], False
        self.search = build_search(read_scan(self.query))
        self.filter_form = ListFilterForm(request.GET)
        values = resolve_filters(request.GET, timezone.now())
        self.filtered_books = self.root_queryset.filter(build_list_condition(values))
        self.filter_form.full_clean()
        self.has_active_filters = self.filter_form.has_values()
        return self.filtered_books.filter(self.search.condition)

    def get_results(self, request: HttpRequest) -> None:
        self.result_count = count_rows(self.queryset)
        self.page = self.read_page(request)
        self.result_list = self.page.rows
        self.full_result_count, self.show_full_result_count = None, False
        self.show_admin_actions, self.can_show_all = True, False
        self.multi_page = self.result_count > len(self.result_list)

    def read_page(self, request: HttpRequest) -> Page[Book]:
        sections = self.list_sections()
        backward = "before" in request.GET or "last" in request.GET
        key = parse_position(request.GET.get("before" if backward else "behind", ""), sections)
        return read_page(self.filtered_books, sections, self.settings.rows, Start(key, backward))

    def list_sections(self) -> Sequence[Section]:
        """The best matches come first, unless the list is sorted."""
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
        """Django sorts by the number of a column, which is another one when the columns change."""
        return {}

    def list_headers(self) -> Iterator[Header]:
        """Yields the heads of the columns that are shown."""
        sort = self.read_sort()
        for name, method in LIST_COLUMNS.items():
            if method in self.list_display:
                text = str(getattr(self.model_admin, method).short_description)
                next_sort = f"-{name}" if sort == name else name
                direction = {name: "ascending", f"-{name}": "descending"}.get(sort, "")
                yield Header(text, self.build_address(sort=next_sort), direction)

    def list_page_links(self) -> Iterator[PageLink]:
        """Yields the links to other pages; none if this one has all books."""
        before, behind = self.page.before, self.page.behind
        if before or "before" in self.params or "behind" in self.params:
            yield PageLink(_("First page"), self.build_address())
        if before:
            yield PageLink(_("Previous page"), self.build_address(before=Position(*before).encode()))
        if behind:
            yield PageLink(_("Next page"), self.build_address(behind=Position(*behind).encode()))
            yield PageLink(_("Last page"), self.build_address(last=1))

    def build_address(self, **changes: Any) -> str:
        return f"?{change_query(self.address_query, **changes)}"

    @property
    def list_query(self) -> str:
        """The query of the list from its beginning."""
        return change_query(self.address_query)

    @property
    def saved_query(self) -> str:
        return change_query(self.address_query, view="")

    @property
    def row_choices(self) -> Sequence[int]:
        return ROWS_OF_A_PAGE

    @property
    def export_parameters(self) -> list[tuple[str, str]]:
        """The parameters that choose the books of the list."""
        return parse_qsl(change_query(self.address_query, sort="", view=""))

    @property
    def workbook_query(self) -> str:
        return change_query(self.address_query, sort="", view="", format=XLSX.name)

    @property
    def export_formats(self) -> Collection[Format]:
        return STREAMED_FORMATS.values()

    def list_column_choices(self) -> Iterator[tuple[str, str, bool]]:
        """Yields the names of the columns that can be hidden, their labels, and whether they are shown."""
        for name, method in LIST_COLUMNS.items():
            if name != "title":
                label = str(getattr(self.model_admin, method).short_description)
                yield name, label, name in self.settings.columns
