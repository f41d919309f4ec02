"""Which books a list holds."""

from collections.abc import Callable, Mapping
from typing import Any

from django import forms
from django.db.models import QuerySet
from django_filters import CharFilter, Filter
from django_filters.rest_framework.backends import DjangoFilterBackend
from django_filters.rest_framework.filterset import FilterSet
from django_filters.utils import translate_validation
from drf_spectacular.drainage import set_override
from rest_framework.exceptions import ErrorDetail, ValidationError
from rest_framework.request import Request

from books.isbn import isbn13
from books.models import FOLDED, Book
from books.search import compiled, containing
from books.serializers import NO_NUL
from library_site.api.query import BOOLEANS, NOT_A_BOOLEAN, NOT_AN_INTEGER
from library_site.db.integers import integer

MAX_LENGTH = 500
MAX_WORDS = 20


def document(filter: Filter, schema: dict[str, Any]) -> None:
    """drf-spectacular takes a filter's help text only where it guesses the schema, too."""
    set_override(filter, "field", {**schema, "description": filter.extra["help_text"]})


class TextFilter(CharFilter):
    """Takes a text as it is sent."""

    def __init__(self, member: str | None = None, **options: Any) -> None:
        super().__init__(member, max_length=MAX_LENGTH, strip=False, **options)
        document(self, {"type": "string", "maxLength": MAX_LENGTH, **NO_NUL})


class Partial(TextFilter):
    """Finds the text anywhere in the member, whatever its case; `%`, `_` and `\\` stand for themselves."""

    def filter(self, qs: QuerySet[Book], value: str) -> QuerySet[Book]:
        return containing(qs, value, self.field_name) if value else qs

    def compiled(self, value: str) -> tuple[str, str]:
        """The condition of `filter`, of a value that is not empty, as SQL and its one parameter (PostgreSQL)."""
        return compiled(value, str(self.field_name))


class BookFilter(FilterSet):
    author = Partial("author", help_text="Case-insensitive partial match on the author.")
    genre = Partial("genre", help_text="Case-insensitive partial match on the genre.")


class Strict(forms.CharField):
    """Reads one text as `read` does; where that finds nothing, it is refused with `problem`."""

    def __init__(self, read: Callable[[str], Any], problem: ErrorDetail, **options: Any) -> None:
        self.read, self.problem = read, problem
        super().__init__(**options)

    def to_python(self, value: str | None) -> Any:
        found = None if value is None else self.read(value)
        if found is None and value is not None:
            raise forms.ValidationError(str(self.problem), self.problem.code)
        return found


class YearFilter(Filter):
    """A bound of the year, itself included."""

    field_class: type[forms.Field] = Strict

    def __init__(self, lookup: str, **options: Any) -> None:
        super().__init__("year", lookup, read=integer, problem=NOT_AN_INTEGER, **options)
        document(self, {"type": "integer"})


class AvailableFilter(Filter):
    field_class: type[forms.Field] = Strict

    def __init__(self, **options: Any) -> None:
        super().__init__("available", read=BOOLEANS.get, problem=NOT_A_BOOLEAN, **options)
        document(self, {"type": "boolean"})


class ISBNFilter(TextFilter):
    """One ISBN in any writing; a text that is none is compared to the letter."""

    def filter(self, qs: QuerySet[Book], value: str) -> QuerySet[Book]:
        if canonical := isbn13(value):
            return qs.filter(isbn13=canonical)
        found: QuerySet[Book] = super().filter(qs, value)
        return found


class WordsFilter(TextFilter):
    """Every word of the text somewhere in one of the searched members."""

    def filter(self, qs: QuerySet[Book], value: str) -> QuerySet[Book]:
        for word in value.split():
            qs = containing(qs, word, *FOLDED)
        return qs


def few_words(text: str) -> None:
    if len(text.split()) > MAX_WORDS:
        raise forms.ValidationError(f"Ensure that there are no more than {MAX_WORDS} words.", "max_words")


class SearchFilter(BookFilter):
    """All that a book can be found by."""

    title = Partial("title", help_text="Case-insensitive partial match on the title.")
    isbn = ISBNFilter("isbn", help_text="The ISBN in any usual writing, with ten digits or thirteen.")
    available = AvailableFilter(help_text="Whether the book is there.")
    year_min = YearFilter("gte", help_text="From this year on.")
    year_max = YearFilter("lte", help_text="Up to this year.")
    q = WordsFilter(validators=[few_words], help_text="Every word somewhere in title, author or genre.")


class StrictFilterBackend(DjangoFilterBackend):
    """Refuses what it cannot use, naming the problems of filters and all else in the query at once."""

    def filter_queryset(self, request: Request, queryset: QuerySet[Any], view: Any) -> QuerySet[Any]:
        problems = view.parameter_problems()
        filters: Mapping[str, Filter] = self.get_filterset_class(view, queryset).base_filters
        given = {name: str(value) for name, value in request.query_params.items() if name in filters}
        try:
            values = cleaned(filters, given)
        except forms.ValidationError:
            # A filter set costs as much as the rest of the request: one is made where it has problems to name.
            problems |= translate_validation(self.get_filterset(request, queryset, view).errors).detail
        if problems:
            raise ValidationError(problems)
        for name, value in values.items():
            queryset = filters[name].filter(queryset, value)
        return queryset


def cleaned(filters: Mapping[str, Filter], given: Mapping[str, str]) -> dict[str, Any]:
    """What parameters say to these filters, as a filter set's form would read each. Raises forms.ValidationError."""
    return {name: filters[name].field.clean(value) for name, value in given.items()}
