"""The form that narrows the list of books, and the parameters of the list's address."""

from collections.abc import Callable, Mapping
from datetime import UTC, date, datetime, time
from typing import Any

from django import forms
from django.db.models import Q, QuerySet
from django.http import QueryDict
from django.utils import timezone
from django.utils.http import urlencode
from django.utils.translation import gettext_lazy as _

from books.fields import fold
from books.lookup.matches import build_search, is_equal
from books.lookup.quality import QUALITIES, build_quality_condition
from books.lookup.scans import read_scan
from books.models import MAX_LENGTHS, YEAR_RANGE, Book
from books.search import MAX_SEARCH_WORDS, contains_condition

AVAILABILITIES = {"available": (_("available"), True), "lent": (_("lent"), False)}


class ListFilterForm(forms.Form):
    """Each field narrows the list further. All are optional."""

    author = forms.CharField(label=_("Author"), max_length=MAX_LENGTHS["author"], required=False)
    genre = forms.CharField(label=_("Genre"), max_length=MAX_LENGTHS["genre"], required=False)
    year_from = forms.IntegerField(
        label=_("Year from"), required=False, min_value=YEAR_RANGE[0], max_value=YEAR_RANGE[1]
    )
    year_to = forms.IntegerField(label=_("to"), required=False, min_value=YEAR_RANGE[0], max_value=YEAR_RANGE[1])
    availability = forms.ChoiceField(
        label=_("Availability"),
        required=False,
        choices=[("", _("any")), *((name, label) for name, (label, _available) in AVAILABILITIES.items())],
    )
    quality = forms.ChoiceField(label=_("To look at"), required=False, choices=[("", _("any")), *QUALITIES.items()])
    added_since = forms.DateField(
        label=_("Added since"), required=False, widget=forms.DateInput(attrs={"type": "date"}, format="%Y-%m-%d")
    )

    def build_condition(self, today: date) -> Q:
        """Invalid values do not narrow the list; the form says what is wrong with them."""
        conditions: dict[str, Callable[[Any], Q]] = {
            "author": self.has_author,
            "genre": lambda genre: is_equal("genre", fold(genre)),
            "year_from": lambda year: Q(year__gte=year),
            "year_to": lambda year: Q(year__lte=year),
            "availability": lambda name: Q(available=AVAILABILITIES[name][1]),
            "quality": lambda name: build_quality_condition(name, today),
            "added_since": lambda day: Q(created_at__gte=begin_day(day)),
        }
        self.full_clean()
        values = {name: self.cleaned_data.get(name) for name in conditions}
        condition = Q()
        for name, value in values.items():
            if value not in (None, ""):
                condition &= conditions[name](value)
        return condition

    def has_author(self, text: str) -> Q:
        condition = Q()
        for word in text.split()[:MAX_SEARCH_WORDS]:
            condition &= contains_condition(word, "author")
        return condition

    def has_values(self) -> bool:
        return any(value not in (None, "") for value in self.cleaned_data.values())


def select_listed(values: Mapping[str, str]) -> QuerySet[Book]:
    """Returns the books of a list with these parameters and, as `today`, the day when it was looked at."""
    today = date.fromisoformat(values["today"])
    condition = ListFilterForm(values).build_condition(today)
    return Book.objects.filter(condition, build_search(read_scan(values.get("q", ""))).condition)


def begin_day(day: date) -> datetime:
    """Returns when the day begins in the reader's zone; in UTC, where the calendar has no such time."""
    try:
        return datetime.combine(day, time(), timezone.get_current_timezone()).astimezone(UTC)
    except OverflowError:
        return datetime.combine(day, time(), UTC)


# What the list's address means, without the position in it.
LIST_PARAMETERS = ("q", *ListFilterForm.base_fields, "sort", "view")


def build_query(query: QueryDict, **changes: Any) -> str:
    """Returns the query of the list with these parameters changed, and with none that it does not know."""
    values = {name: query[name] for name in LIST_PARAMETERS if query.get(name)} | changes
    return urlencode({name: value for name, value in values.items() if value not in (None, "")})
