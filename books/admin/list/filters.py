"""The filters of the list: their form, the parameters of the list's address, and what they say in words."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, date, datetime, time
from typing import Any

import msgspec
from django import forms
from django.db.models import Q, QuerySet
from django.http import QueryDict
from django.urls import reverse
from django.utils import timezone
from django.utils.formats import date_format
from django.utils.http import urlencode
from django.utils.translation import gettext, ngettext
from django.utils.translation import gettext_lazy as _

from books.admin.descriptions import AVAILABLE, STATES, Link, isolate, label_field
from books.book.fields import MAX_LENGTHS
from books.book.texts import fold, split_words
from books.models import YEAR_RANGE, Book, Change
from books.operations.selection_tasks import StoredFilter, register_selection
from books.operations.tasks import OperationFailed
from books.search.lent_books import AVAILABILITY_CONDITIONS
from books.search.matches import build_search, is_equal
from books.search.quality import NO_GENRE, QUALITIES, build_quality_condition, is_blank_genre
from books.search.scans import Scan, ScanKind, read_scan
from books.search.similar_texts import find_similar_texts
from books.search.texts import MAX_SEARCH_WORDS, find_words
from library_site.admin.moments import format_date, localize_moment
from library_site.db.integers import BIGINT_MAX, parse_integer

# The name under which operations store the filters of the list.
LIST_FORM = "list"


# The ids of one page of the list are shorter.
MAX_IDS_LENGTH = 4_000
# As many as a page of genres has. SQLite takes 1,000 conditions.
MAX_GENRES = 100


def split_ids(text: str) -> list[str]:
    return text.split(",") if text else []


def read_genre_names(text: str) -> list[str]:
    """Returns the names of a JSON list of texts; none for any other text, or too many."""
    with suppress(msgspec.MsgspecError):
        names = msgspec.json.decode(text, type=list[str])
        return [] if "\0" in "".join(names) or len(names) > MAX_GENRES else names
    return []


def has_genre(name: str) -> Q:
    return is_equal("genre", fold(name)) if name.strip() else is_blank_genre()


def build_genre_filter(name: str) -> dict[str, str]:
    return {"genre": name} if name.strip() else {"quality": NO_GENRE}


class ListFilterForm(forms.Form):
    """Each field filters the list further. All are optional."""

    author = forms.CharField(label=_("Author"), max_length=MAX_LENGTHS["author"], required=False)
    genre = forms.CharField(label=_("Genre"), max_length=MAX_LENGTHS["genre"], required=False)
    year_from = forms.IntegerField(
        label=_("Year from"), required=False, min_value=YEAR_RANGE[0], max_value=YEAR_RANGE[1]
    )
    year_to = forms.IntegerField(label=_("to"), required=False, min_value=YEAR_RANGE[0], max_value=YEAR_RANGE[1])
    availability = forms.ChoiceField(label=_("Availability"), required=False, choices=[("", _("any")), *STATES.items()])
    quality = forms.ChoiceField(label=_("To look at"), required=False, choices=[("", _("any")), *QUALITIES.items()])
    added_since = forms.DateField(
        label=_("Added since"), required=False, widget=forms.DateInput(attrs={"type": "date"}, format="%Y-%m-%d")
    )

    genres = forms.CharField(label=_("Genres"), required=False, max_length=MAX_IDS_LENGTH, widget=forms.HiddenInput)
    ids = forms.CharField(
        label=_("Selected books"), required=False, max_length=MAX_IDS_LENGTH, widget=forms.HiddenInput
    )
    operation = forms.IntegerField(required=False, min_value=1, max_value=BIGINT_MAX, widget=forms.HiddenInput)

    def clean_genres(self) -> str:
        """Parses a JSON list of genres: a genre can contain any character."""
        text: str = self.cleaned_data["genres"]
        if text and not read_genre_names(text):
            raise forms.ValidationError(gettext("These are no genres."), "genres")
        return text

    def clean_ids(self) -> str:
        """Parses the ids of the checked books, separated by commas."""
        text: str = self.cleaned_data["ids"]
        if any(number is None or abs(number) > BIGINT_MAX for number in map(parse_integer, split_ids(text))):
            raise forms.ValidationError(gettext("Enter IDs of books, with commas between them."), "ids")
        return text

    def build_condition(self) -> Q:
        """Needs a valid form."""
        conditions: dict[str, Callable[[Any], Q]] = {
            "author": lambda text: find_words(split_words(text)[:MAX_SEARCH_WORDS], "author"),
            "genre": has_genre,
            "genres": lambda text: Q(*map(has_genre, read_genre_names(text)), _connector=Q.OR),
            "year_from": lambda year: Q(year__gte=year),
            "year_to": lambda year: Q(year__lte=year),
            "availability": lambda name: AVAILABILITY_CONDITIONS[name == AVAILABLE],
            "operation": lambda pk: Q(pk__in=Change.objects.filter(operation=pk).values("book_id")),
            "ids": lambda text: Q(pk__in=map(int, split_ids(text))),
        }
        values = {name: self.cleaned_data.get(name) for name in conditions}
        return Q(*(conditions[name](value) for name, value in values.items() if value not in (None, "")))


# Resolved filters have these values besides the list's parameters.
RESOLVED_NAMES = ("today", "added_from")


class UnresolvedFilter(OperationFailed):
    """The values do not say which books to select."""


def resolve_filters(query: Mapping[str, str], now: datetime) -> dict[str, str]:
    """Returns the valid parameters of a list, and replaces values that depend on the time or the user.

    Then the same values always select the same books: `added_from` is the start of the day in the user's time zone, and
    `today` the day in UTC that limits probable years.
    """
    form = ListFilterForm(query)
    form.full_clean()
    # Databases cannot store NUL. It separates words, as a space does.
    values = {name: str(query[name]).replace("\0", " ") for name in ("q", *form.cleaned_data) if query.get(name)}
    values["today"] = now.astimezone(UTC).date().isoformat()
    if day := form.cleaned_data.get("added_since"):
        values |= {"added_since": day.isoformat(), "added_from": begin_day(day).isoformat()}
    return values


@register_selection(LIST_FORM)
def select_listed(values: Mapping[str, str]) -> QuerySet[Book]:
    """Returns the books of a list with resolved filters, in any time zone and at any time. Raises UnresolvedFilter."""
    return Book.objects.filter(build_list_condition(values), build_search(read_scan(values.get("q", ""))).condition)


def build_list_condition(values: Mapping[str, str]) -> Q:
    """Returns the condition of resolved filters. Raises UnresolvedFilter."""
    form = ListFilterForm(values)
    is_resolved = "added_from" in values or not values.get("added_since")
    if not form.is_valid() or not is_resolved:
        raise UnresolvedFilter(gettext("The filter of the list cannot be read any more. Begin again from the list."))
    condition = form.build_condition()
    if "added_from" in values:
        condition &= Q(created_at__gte=datetime.fromisoformat(values["added_from"]))
    if quality := values.get("quality"):
        condition &= build_quality_condition(quality, date.fromisoformat(values["today"]))
    return condition


def begin_day(day: date) -> datetime:
    """Returns the start of the day in the user's time zone, or in UTC if that time does not exist there."""
    try:
        return datetime.combine(day, time(), timezone.get_current_timezone()).astimezone(UTC)
    except OverflowError:
        return datetime.combine(day, time(), UTC)


# The parameters that select books, without the cursor.
LIST_PARAMETERS = ("q", *ListFilterForm.base_fields, "sort", "view")


MAX_SHOWN_NAME = 40
# The cursor and the parameters of Django's own lists, of which others begin with "_". None of them selects books.
OTHER_PARAMETERS = ("before", "behind", "last", "page", "exact", "o", "p", "e", "all")


def list_unknown_names(query: QueryDict, *known_names: str) -> list[str]:
    """Returns the unknown parameters of the list's address: a misspelled filter does not filter the list."""
    known = (*LIST_PARAMETERS, *OTHER_PARAMETERS, *known_names)
    return [name for name in query if name not in known and not name.startswith("_")]


def describe_unknown(names: Sequence[str]) -> str:
    sentence = gettext("This list has no filter “%(names)s”, and shows the books without it.")
    return sentence % {"names": ", ".join(name[:MAX_SHOWN_NAME] for name in names)}


def change_query(query: QueryDict, **changes: Any) -> str:
    """Returns the query of the list with these parameters changed, and without unknown parameters."""
    values = {name: query[name] for name in LIST_PARAMETERS if query.get(name)} | changes
    return urlencode({name: value for name, value in values.items() if value not in (None, "")})


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
    labels = {name: gettext("Find") if name == "q" else label_field(name) for name in stored if name not in values}
    others = [f"{label}: {stored[name]}" for name, label in labels.items()]
    return ", ".join([*others, *(text for _names, text in describe_filter_values(values))])


def describe_filter_values(values: Mapping[str, Any]) -> Iterable[tuple[Sequence[str], str]]:
    """Yields a sentence for each filter: the field contains the text or equals it."""
    sentences: dict[str, Callable[[Any], str]] = {
        "author": lambda text: gettext("Author contains “%(text)s”") % {"text": isolate(text)},
        "genre": lambda text: gettext("Genre is “%(text)s”") % {"text": isolate(text)},
        "genres": lambda text: ", ".join(name or gettext("no genre") for name in read_genre_names(text)),
        "year_from": lambda year: gettext("From %(year)s") % {"year": year},
        "year_to": lambda year: gettext("Up to %(year)s") % {"year": year},
        "availability": lambda name: str(STATES[name]),
        "quality": lambda name: str(QUALITIES[name]),
        "added_since": lambda begin: gettext("Added since %(day)s") % {"day": describe_begin(begin)},
        "operation": lambda pk: gettext("Changes of many books") + f": #{pk}",
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
    return f"{first}–{last}" if first >= 0 else gettext("%(first)d to %(last)d") % {"first": first, "last": last}


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
        return date_format(begin, gettext("j M Y"))
    local = localize_moment(begin)
    return f"{format_date(local)}, {date_format(local, 'H:i T')}"
