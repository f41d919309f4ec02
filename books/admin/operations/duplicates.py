"""Pairs of books that are probably duplicates. The user merges them field by field, or marks them as different."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from functools import partial
from typing import Any, NamedTuple

from django import forms
from django.contrib import messages
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import reverse
from django.utils import timezone
from django.utils.html import format_html
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from books.admin.descriptions import format_value, history_address, label_field, operation_address
from books.admin.pager import Pager
from books.admin.views import find_librarian, render_page
from books.book_fields import FIELDS
from books.models import Book
from books.search.duplicates import MAX_PAIRS, SAME_ISBN, SAME_TITLE, Pair, check_pairs, mark_distinct
from books.summaries import DUPLICATES, find_count_time, read_summary
from books.writing.merging import merge_books
from library_site.admin.paginator import BoundedCount
from library_site.api.cursors import CursorInteger, PageCursor
from library_site.db.integers import BIGINT_MAX, parse_integer
from library_site.db.keyset import Page, Start, cut_page
from library_site.http.api_errors import APIError

PAIRS_OF_A_PAGE = 25
PAIR_KINDS = {SAME_ISBN: gettext_lazy("Same ISBN"), SAME_TITLE: gettext_lazy("Same title and author")}


class PairCursor(PageCursor):
    """A position in the pairs of a kind."""

    first: CursorInteger
    second: CursorInteger


class PairTab(NamedTuple):
    """The pairs of a kind, and when they were counted, None if it is now."""

    kind: str
    label: Any
    pairs: list[Pair]
    size: int
    counted_at: datetime | None


class FieldLine(NamedTuple):
    """A field of both books, and which book's value is selected."""

    name: str
    label: str
    values: Sequence[tuple[int, str, bool]]
    differs: bool


class MergeForm(forms.Form):
    """The book to keep, the versions that the page showed, and for each field the book whose value is taken."""

    def __init__(self, data: Mapping[str, Any], pair: Pair) -> None:
        super().__init__(data)
        choices = [(str(pk), str(pk)) for pk in pair]
        self.pair = pair
        self.fields["kept"] = forms.ChoiceField(choices=choices)
        self.fields |= {f"version_{pk}": forms.IntegerField(min_value=1, max_value=BIGINT_MAX) for pk in pair}
        self.fields |= {f"member_{name}": forms.ChoiceField(choices=choices) for name in FIELDS}

    def list_versions(self) -> dict[int, int]:
        return {pk: self.cleaned_data[f"version_{pk}"] for pk in self.pair}

    def list_sources(self) -> dict[str, int]:
        return {name: int(self.cleaned_data[f"member_{name}"]) for name in FIELDS}


def show_duplicates(request: HttpRequest) -> HttpResponse:
    """Lists pairs, sorted by id. A POST marks a pair as different books."""
    if request.method == "POST":
        if pair := read_pair(request.POST.get("pair", "")):
            mark_distinct(pair)
        return HttpResponseRedirect(request.get_full_path())
    now = timezone.now()
    tabs = [read_tab(kind, now) for kind in PAIR_KINDS]
    tab = choose_tab(tabs, request.GET.get("kind", ""))
    pager = Pager(request.GET, PairCursor)
    shown = pager.read(partial(read_pairs, tab.pairs), PAIRS_OF_A_PAGE)
    books = Book.objects.in_bulk({pk for pair in shown for pk in pair})
    return render_page(
        request,
        "operations/duplicates",
        _("Possible duplicates"),
        # A book can be deleted after the pairs were read.
        pairs=[(pair, describe_pair([books[pk] for pk in pair])) for pair in shown if books.keys() >= set(pair)],
        tab=tab,
        tabs=tabs,
        counted_at=tab.counted_at,
        pager=pager,
    )


def read_tab(kind: str, now: datetime) -> PairTab:
    summary = read_summary(DUPLICATES[kind], now)
    found = summary.numbers["pairs"]
    pairs = check_pairs(kind, found)
    size = BoundedCount(MAX_PAIRS) if len(pairs) > MAX_PAIRS else len(pairs)
    return PairTab(kind, PAIR_KINDS[kind], pairs, size, find_count_time(summary, now))


def read_pairs(pairs: Sequence[Pair], start: Start, limit: int) -> Page[Pair]:
    beyond = [pair for pair in pairs if not start.key or (pair < start.key if start.backward else pair > start.key)]
    return cut_page(sorted(beyond, reverse=start.backward)[: limit + 1], limit, start, tuple)


def choose_tab(tabs: Sequence[PairTab], kind: str) -> PairTab:
    """Without a kind, selects the first one that has pairs."""
    chosen = [tab for tab in tabs if tab.kind == kind] or [tab for tab in tabs if tab.pairs]
    return chosen[0] if chosen else tabs[0]


def describe_pair(books: Sequence[Book]) -> list[tuple[Book, set[str]]]:
    """Returns each book with the names of the fields in which the two differ."""
    differing = {name for name in FIELDS if len({getattr(book, name) for book in books}) > 1}
    return [(book, differing) for book in books]


def merge(request: HttpRequest) -> HttpResponse:
    """Shows two books side by side. A POST merges them."""
    pair = read_pair(request.GET.get("pair", ""))
    books = Book.objects.in_bulk(pair or ())
    if pair is None or len(books) < len(pair):
        messages.error(request, _("One of the books is not there any more."))
        return HttpResponseRedirect(reverse("admin:duplicates"))
    if request.method == "POST":
        form = MergeForm(request.POST, pair)
        if form.is_valid():
            return merge_and_report(request, form)
        messages.error(request, _("Choose a book for each field."))
    return render_page(
        request,
        "operations/merge",
        _("Merge two books"),
        books=[books[pk] for pk in pair],
        lines=[build_line(name, [books[pk] for pk in pair]) for name in FIELDS],
    )


def merge_and_report(request: HttpRequest, form: MergeForm) -> HttpResponse:
    kept = int(form.cleaned_data["kept"])
    try:
        operation = merge_books(
            kept, form.list_versions(), form.list_sources(), find_librarian(request), timezone.now()
        )
    except APIError as refusal:
        messages.error(request, _("Nothing was changed. %(reason)s.") % {"reason": _(refusal.message)})
        return HttpResponseRedirect(request.get_full_path())
    text = _("The books are merged.")
    messages.success(request, format_html('{} <a href="{}">{}</a>', text, operation_address(operation), _("Undo")))
    return HttpResponseRedirect(history_address(kept))


def build_line(name: str, books: Sequence[Book]) -> FieldLine:
    """The older book's value is selected first."""
    values = [(book.pk, format_value(getattr(book, name)), book is books[0]) for book in books]
    return FieldLine(name, label_field(name), values, values[0][1] != values[1][1])


def read_pair(text: str) -> Pair | None:
    """Parses `1-2`. Returns None for any other text."""
    numbers = [parse_integer(part) for part in text.split("-")]
    pks = [number for number in numbers if number is not None and 0 < number <= BIGINT_MAX]
    return Pair(*pks) if len(pks) == len(numbers) == 2 and pks[0] < pks[1] else None
