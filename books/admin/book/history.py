"""The history of a book, and a comparison of its states. The book may be deleted."""

from collections.abc import Iterator, Sequence
from datetime import datetime
from functools import partial
from typing import Any, NamedTuple

from django import forms
from django.conf import settings
from django.contrib import messages
from django.contrib.admin.utils import unquote
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import reverse
from django.utils.translation import gettext, gettext_noop
from django.utils.translation import gettext_lazy as _

from books.admin.descriptions import (
    Description,
    Link,
    compare_fields,
    describe_entries,
    history_address,
    isolate,
    link_book,
    state_address,
)
from books.admin.pager import PAGE_SIZE, Pager
from books.admin.views import SEE_BOOKS, render_page
from books.book.fields import FIELDS
from books.history.change_pages import Entry, read_book_page
from books.history.records import MERGED_INTO
from books.history.states import (
    DELETIONS,
    MAX_VERSION,
    UnknownVersion,
    find_present_state,
    find_state,
    read_creation_time,
)
from books.models import Book, Change
from books.permissions import BOOK_ACTIONS, VIEW_HISTORY
from library_site.admin.site import has_any_permission
from library_site.db.integers import parse_integer
from library_site.db.keyset import Start

# The number of changes on the page of a book.
MAX_LAST_CHANGES = 3
UNKNOWN_STATE = gettext_noop("A state of the book with this version is not known.")


class KnownBook(NamedTuple):
    """A book that exists or was deleted. `version` is its latest version."""

    pk: int
    name: str
    version: int
    added_at: datetime | None = None
    is_there: bool = False
    is_restorable: bool = False


class VersionsForm(forms.Form):
    """The two versions to compare. The second one defaults to the current version."""

    version = forms.IntegerField(label=_("Compare version"), min_value=1, max_value=MAX_VERSION)
    other = forms.IntegerField(label=_("with version"), min_value=1, max_value=MAX_VERSION, required=False)


def show_history(request: HttpRequest, object_id: str) -> HttpResponse:
    book = find_known_book(object_id)
    if book is None:
        return redirect_unknown(request)
    pager = Pager(request.GET, is_newest_first=True)
    entries = pager.read(partial(read_book_page, book.pk), PAGE_SIZE)
    return render_page(
        request,
        "history",
        gettext("History of %(book)s") % {"book": isolate(book.name)},
        page_help=gettext(
            "Each change of a book makes a new version of it, with a number. Compare two versions to see what differs,"
            " and restore an earlier one: that is a change too, and nothing is lost."
        ),
        book=book,
        changes=list(zip(describe_entries(entries), find_gaps(book, pager), strict=True)),
        pager=pager,
        oldest=entries[-1] if entries and pager.is_last else None,
        first_state=find_first_state(book, entries[-1:]) if pager.is_last else None,
        kept_days=settings.HISTORY_KEPT_DAYS,
        versions_form=VersionsForm(
            initial={"version": find_previous_version(book, entries), "other": book.version}, label_suffix=""
        ),
        merged_books=list_merged(book.pk),
        may_restore=book.is_restorable and request.user.has_perms(BOOK_ACTIONS["restore"]),
    )


def list_last_changes(request: HttpRequest, book: Book | None) -> Sequence[Description]:
    """Returns the latest changes for the page of the book; empty for users who may not see the history."""
    if book is None or not request.user.has_perm(VIEW_HISTORY):
        return []
    return describe_entries(read_book_page(book.pk, Start(), MAX_LAST_CHANGES).rows)


def find_first_state(book: KnownBook, oldest: Sequence[Entry]) -> dict[str, Any] | None:
    """Returns the first known state if no entry shows it: the state before the oldest change, or the only state."""
    if oldest and oldest[0].kind is Change.Kind.CREATED:
        return None
    version = oldest[0].version - 1 if oldest else book.version
    try:
        fields = find_state(book.pk, version)
    except UnknownVersion:
        return None
    address = state_address(book.pk, version)
    return {"version": version, "lines": compare_fields(fields, None), "address": address}


def list_merged(pk: int) -> list[Link]:
    """Returns the books that were merged into this one, latest first."""
    merges = Change.objects.filter(kind=Change.Kind.MERGED, **{f"after__{MERGED_INTO}": pk}).order_by("-at", "-pk")
    return [link_book(book_id) for book_id in merges.values_list("book_id", flat=True)[:PAGE_SIZE]]


def find_previous_version(book: KnownBook, entries: Sequence[Entry]) -> int:
    versions = (entry.version for entry in entries if entry.kind not in DELETIONS)
    return next((version for version in versions if version < book.version), max(1, book.version - 1))


def show_state(request: HttpRequest, object_id: str) -> HttpResponse:
    book = find_known_book(object_id)
    if book is None:
        return redirect_unknown(request)
    form = VersionsForm(request.GET, label_suffix="")
    columns = build_columns(request, book, form) if form.is_valid() else None
    if not columns:
        messages.error(request, gettext(UNKNOWN_STATE))
        return HttpResponseRedirect(history_address(book.pk))
    heading = describe_versions([column["version"] for column in columns])
    return render_page(
        request,
        "state",
        gettext("%(versions)s of %(book)s") % {"versions": heading, "book": isolate(book.name)},
        heading=heading,
        book=book,
        columns=columns,
        lines=compare_fields(columns[0]["fields"], columns[-1]["fields"]),
        versions_form=form,
    )


def describe_versions(versions: Sequence[int]) -> str:
    if len(versions) == 1:
        return gettext("Version %(version)d") % {"version": versions[0]}
    return gettext("Versions %(first)d and %(second)d") % {"first": versions[0], "second": versions[1]}


def find_known_book(object_id: str) -> KnownBook | None:
    pk = parse_integer(unquote(object_id))
    if pk is None:
        return None
    book = Book.objects.filter(pk=pk).first()
    if book:
        return KnownBook(pk, str(book), book.version, book.created_at, is_there=True)
    last = Change.objects.filter(book_id=pk).order_by("-version").first()
    if last is None:
        return None
    if last.kind not in DELETIONS or last.before is None:
        return KnownBook(pk, gettext("Book %(number)d") % {"number": pk}, last.version)
    name = str(Book(**{name: last.before[name] for name in FIELDS}))
    return KnownBook(pk, name, last.version - 1, read_creation_time(last), is_restorable=True)


def redirect_unknown(request: HttpRequest) -> HttpResponse:
    messages.warning(request, gettext("No book has this ID, and the history knows none."))
    name = "admin:books_book_changelist" if has_any_permission(request, SEE_BOOKS) else "admin:index"
    return HttpResponseRedirect(reverse(name))


def find_gaps(book: KnownBook, pager: Pager) -> Iterator[dict[str, int] | None]:
    """Yields the versions that are missing after each entry. Before the first one, they may be unknown."""
    # A deletion increases the version, too.
    upper: int | None = book.version + (1 if book.is_there else 2)
    if pager.start.backward and pager.page.previous_key:
        upper = None
    elif pager.start.key and not pager.start.backward:
        upper = int(pager.start.key[0])
    for entry in pager.page.rows:
        yield {"first": entry.version + 1, "last": upper - 1} if upper and upper - entry.version > 1 else None
        upper = entry.version


def build_columns(request: HttpRequest, book: KnownBook, form: VersionsForm) -> list[dict[str, Any]]:
    """Returns the states with these versions; empty if one of them is unknown."""
    present = find_present_state(book.pk)
    versions = {form.cleaned_data["version"], form.cleaned_data["other"] or present.version or book.version}
    try:
        states = [(version, find_state(book.pk, version)) for version in sorted(versions)]
    except UnknownVersion:
        return []
    may_restore = book.is_there and request.user.has_perms(BOOK_ACTIONS["revert"])
    return [
        {
            "version": version,
            "is_present": version == present.version,
            "fields": fields,
            "is_restorable": may_restore and fields != present.fields,
        }
        for version, fields in states
    ]
