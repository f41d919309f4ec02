"""Pairs of books that are probably duplicates. The user merges them field by field, or marks them as different."""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from django import forms
from django.contrib import messages
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import reverse
from django.utils import timezone
from django.utils.html import format_html
from django.utils.translation import gettext as _

from books.admin.descriptions import Link, format_value, history_address, label_field
from books.admin.pager import Pager
from books.admin.views import find_librarian, may_undo, render_page, report_done, report_rejected
from books.book.fields import FIELDS
from books.models import Book
from books.search.duplicates import Pair, mark_distinct, unmark_distinct
from books.summaries import read_duplicates
from books.writing.merging import merge_books
from library_site.api.cursors import Cursor, CursorInteger
from library_site.db.integers import BIGINT_MAX, parse_integer
from library_site.db.keyset import Page, Start, cut_page
from library_site.http.api_errors import APIError

PAIRS_OF_A_PAGE = 25
SHOWN_FIELDS = [name for name in FIELDS if name != "available"]
# The parameter of an address that takes a mark back.
UNDO = "undo"
CELL_KINDS = {"year": "number", "isbn": "isbn"}


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
        pair = read_pair(request.POST.get("pair", ""))
        if pair and Book.objects.filter(pk__in=pair).count() == len(pair):
            mark_and_report(request, pair)
        else:
            report_missing(request)
        return HttpResponseRedirect(request.get_full_path())
    duplicates = read_duplicates(timezone.now())
    pager = Pager(request.GET, Cursor(bool, CursorInteger, CursorInteger))
    shown = pager.read(partial(read_pairs, duplicates.pairs), PAIRS_OF_A_PAGE)
    books = Book.objects.in_bulk({pk for pair in shown for pk in pair})
    return render_page(
        request,
        "operations/duplicates",
        _("Possible duplicates"),
        duplicates=duplicates,
        first_address=merge_address(duplicates.pairs[0]) if duplicates.pairs else "",
        # A book can be deleted after the pairs were read.
        pairs=[describe_pair(pair, [books[pk] for pk in pair]) for pair in shown if books.keys() >= set(pair)],
        pager=pager,
    )


def read_pairs(pairs: Sequence[Pair], start: Start, limit: int) -> Page[Pair]:
    beyond = [pair for pair in pairs if not start.key or (pair < start.key if start.backward else pair > start.key)]
    return cut_page(sorted(beyond, reverse=start.backward)[: limit + 1], limit, start, tuple)


def describe_pair(pair: Pair, books: Sequence[Book]) -> dict[str, Any]:
    rows = [(book, [build_cell(name, book, books) for name in SHOWN_FIELDS]) for book in books]
    return {"pair": pair, "books": rows, "reason": describe_reason(books), "address": merge_address(pair)}


def build_cell(name: str, book: Book, books: Sequence[Book]) -> tuple[str, str, bool]:
    """Returns the text, its CSS class, and whether it is marked. Two ISBNs nearly always differ, so they are not."""
    differs = name != "isbn" and len({getattr(book, name) for book in books}) > 1
    return format_value(getattr(book, name)), CELL_KINDS.get(name, ""), differs


def describe_reason(books: Sequence[Book]) -> str:
    first, second = (book.isbn13 for book in books)
    return _("same ISBN") if first and first == second else _("same title and author")


def merge(request: HttpRequest) -> HttpResponse:
    """Shows two books side by side. A POST merges them, or marks them as different, and leads to the next pair.

    A POST to the address with UNDO takes the mark back.
    """
    pair = read_pair(request.GET.get("pair", ""))
    books = Book.objects.in_bulk(pair or ())
    if pair is None or len(books) < len(pair):
        report_missing(request)
        return HttpResponseRedirect(reverse("admin:duplicates"))
    if request.method == "POST" and UNDO in request.GET:
        unmark_distinct(pair)
        return HttpResponseRedirect(merge_address(pair))
    if request.method == "POST" and "distinct" in request.POST:
        mark_and_report(request, pair)
        return HttpResponseRedirect(find_next_address(pair, read_duplicates(timezone.now()).pairs))
    if request.method == "POST":
        form = MergeForm(request.POST, pair)
        if form.is_valid():
            return merge_and_report(request, form)
        messages.error(request, _("Choose a book for each field."))
    duplicates, shown = read_duplicates(timezone.now()), [books[pk] for pk in pair]
    return render_page(
        request,
        "operations/merge",
        _("Merge two books"),
        books=shown,
        reason=describe_reason(shown),
        lines=[build_line(name, shown) for name in FIELDS],
        duplicates=duplicates,
        next_address=find_next_address(pair, duplicates.pairs) if duplicates.pairs not in ([], [pair]) else "",
    )


def mark_and_report(request: HttpRequest, pair: Pair) -> None:
    mark_distinct(pair)
    report_done(request, _("They are not listed as duplicates any more."), f"{merge_address(pair)}&{UNDO}=yes")


def report_missing(request: HttpRequest) -> None:
    messages.error(request, _("One of the books is not there any more."))


def merge_and_report(request: HttpRequest, form: MergeForm) -> HttpResponse:
    kept, now = int(form.cleaned_data["kept"]), timezone.now()
    try:
        operation = merge_books(kept, form.list_versions(), form.list_sources(), find_librarian(request), now)
    except APIError as refusal:
        report_rejected(request, refusal)
        return HttpResponseRedirect(request.get_full_path())
    # Somebody else can delete the book at once.
    title = Book.objects.filter(pk=kept).values_list("title", flat=True).first() or ""
    text = format_html(_("The two books are one now: {}."), str(Link(title, history_address(kept))))
    report_done(request, text, reverse("admin:operation_undo", args=[operation]) if may_undo(request) else "")
    return HttpResponseRedirect(find_next_address(form.pair, read_duplicates(now).pairs))


def find_next_address(pair: Pair, pairs: Sequence[Pair]) -> str:
    """Returns the page of the next pair, of the first one after the last, or the list if there are no more."""
    following = next((other for other in pairs if other > pair), pairs[0] if pairs else None)
    return merge_address(following) if following else reverse("admin:duplicates")


def merge_address(pair: Pair) -> str:
    return reverse("admin:merge", query={"pair": f"{pair.first}-{pair.second}"})


def build_line(name: str, books: Sequence[Book]) -> dict[str, Any]:
    """Describes a field of both books. The older book's value is selected first."""
    values = [(book.pk, format_value(getattr(book, name)), book is books[0]) for book in books]
    differs = values[0][1] != values[1][1]
    return {"name": name, "label": label_field(name), "values": values, "differs": differs}


def read_pair(text: str) -> Pair | None:
    """Parses `1-2`. Returns None for any other text."""
    numbers = [parse_integer(part) for part in text.split("-")]
    pks = [number for number in numbers if number is not None and 0 < number <= BIGINT_MAX]
    return Pair(*pks) if len(pks) == len(numbers) == 2 and pks[0] < pks[1] else None
