"""Describes filters of books as text, and proposes other searches."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import date, datetime
from typing import Any

from django.urls import reverse
from django.utils.formats import date_format
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from books.admin.descriptions import STATES, Link, isolate, label_field
from books.admin.list.filters import (
    LIST_FORM,
    RESOLVED_NAMES,
    ListFilterForm,
    read_genre_names,
    split_ids,
)
from books.operations.selections import StoredFilter
from books.search.quality import QUALITIES
from books.search.scans import Scan, ScanKind
from books.search.similar_texts import find_similar_texts
from library_site.admin.moments import format_date, localize_moment


def describe_selection(selection: StoredFilter) -> str:
    """Describes the filter of an operation; empty if it selects every book."""
    stored = {name: value for name, value in selection.values.items() if value and name not in RESOLVED_NAMES}
    values: dict[str, Any] = {}
    if selection.form == LIST_FORM:
        form = ListFilterForm(stored)
        form.full_clean()
        values = {name: form.cleaned_data[name] for name in stored if name in form.cleaned_data}
        if "added_from" in selection.values:
            values["added_since"] = datetime.fromisoformat(selection.values["added_from"])
    # The search, the filters of the API, and values that earlier releases stored.
    labels = {name: _("Find") if name == "q" else label_field(name) for name in stored if name not in values}
    others = [f"{label}: {stored[name]}" for name, label in labels.items()]
    return ", ".join([*others, *(text for _names, text in describe_filter_values(values))])


def describe_filter_values(values: Mapping[str, Any]) -> Iterable[tuple[Sequence[str], str]]:
    """Yields a sentence for each filter: the field contains the text or equals it."""
    sentences: dict[str, Callable[[Any], str]] = {
        "author": lambda text: _("Author contains “%(text)s”") % {"text": isolate(text)},
        "genre": lambda text: _("Genre is “%(text)s”") % {"text": isolate(text)},
        "genres": lambda text: ", ".join(name or _("no genre") for name in read_genre_names(text)),
        "year_from": lambda year: _("From %(year)s") % {"year": year},
        "year_to": lambda year: _("Up to %(year)s") % {"year": year},
        "availability": lambda name: str(STATES[name]),
        "quality": lambda name: str(QUALITIES[name]),
        "added_since": lambda begin: _("Added since %(day)s") % {"day": describe_begin(begin)},
        "operation": lambda pk: _("Changes of many books") + f": #{pk}",
        "ids": describe_ids,
    }
    years = ("year_from", "year_to")
    if all(name in values for name in years):
        yield years, format_years(values["year_from"], values["year_to"])
        values = {name: value for name, value in values.items() if name not in years}
    for name, value in values.items():
        yield (name,), sentences[name](value)


def format_years(first: int, last: int) -> str:
    """A dash between years before 0 would look like another minus."""
    return f"{first}–{last}" if first >= 0 else _("%(first)d to %(last)d") % {"first": first, "last": last}


def list_similar_searches(scan: Scan) -> list[Link]:
    """Returns links to the lists of similar titles and authors; none for the code of a book."""
    texts = find_similar_texts(scan.text) if scan.kind is ScanKind.WORDS else []
    return [Link(text, reverse("admin:books_book_changelist", query={"q": text})) for text in texts]


def describe_ids(text: str) -> str:
    count = len(split_ids(text))
    return ngettext("%(count)d selected book", "%(count)d selected books", count) % {"count": count}


def describe_begin(begin: date | datetime) -> str:
    """Describes a day, or the time at which it began for the user."""
    if not isinstance(begin, datetime):
        return date_format(begin, _("j M Y"))
    local = localize_moment(begin)
    return f"{format_date(local)}, {date_format(local, 'H:i T')}"
