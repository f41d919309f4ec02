"""The filters of the list of books."""

from collections.abc import Callable, Mapping
from typing import Any

from django import forms
from django.db.models import QuerySet
from django_filters import CharFilter, Filter
from django_filters.rest_framework.backends import DjangoFilterBackend
from django_filters.rest_framework.filterset import FilterSet
from django_filters.utils import translate_validation
from drf_spectacular.drainage import set_override
from rest_framework import serializers
from rest_framework.exceptions import ErrorDetail, ValidationError

from books.book.isbn import normalize_isbn
from books.book.texts import fold_loosely, split_words
from books.models import Book
from books.operations.selection_tasks import register_selection
from books.search.lent_books import AVAILABILITY_CONDITIONS
from books.search.texts import MAX_SEARCH_LENGTH, MAX_SEARCH_WORDS, find_strictly, find_words
from library_site.api.query import BOOLEANS, INVALID_BOOLEAN, INVALID_INTEGER
from library_site.api.serializers import NO_NUL_SCHEMA, StrictBooleanField, StrictIntegerField, StringField
from library_site.api.shipped import remember
from library_site.db.integers import parse_integer

# The name under which operations store the filters of BookSearchFilter.
SEARCH_FORM = "v2"
# Created once, because creating a queryset takes as long as encoding a page.
ALL_BOOKS = Book.objects.order_by("pk")


def set_filter_schema(filter: Filter, schema: dict[str, Any]) -> None:
    """Sets the schema and the help text of a filter. For an explicit schema, drf-spectacular omits the help text."""
    set_override(filter, "field", {**schema, "description": filter.extra["help_text"]})


class TextFilter(CharFilter):
    """Uses a text without changing it."""

    def __init__(self, name: str | None = None, **options: Any) -> None:
        super().__init__(name, max_length=MAX_SEARCH_LENGTH, strip=False, **options)
        set_filter_schema(self, {"type": "string", "maxLength": MAX_SEARCH_LENGTH, **NO_NUL_SCHEMA})

    def build_condition_value(self) -> serializers.Field[Any, Any, Any, Any]:
        """Returns the field of a JSON body with the same values. Each filter here has such a field."""
        return StringField(required=False, max_length=MAX_SEARCH_LENGTH)


class ContainsFilter(TextFilter):
    r"""Finds the text anywhere in the field, ignoring case. `%`, `_` and `\` match themselves."""

    def filter(self, qs: QuerySet[Book], value: str) -> QuerySet[Book]:
        return qs.filter(find_strictly(value, self.field_name)) if value else qs


class LooseFilter(TextFilter):
    """Finds the text anywhere in the field, as people type it."""

    def filter(self, qs: QuerySet[Book], value: str) -> QuerySet[Book]:
        return qs.filter(find_words([fold_loosely(value)], self.field_name)) if value else qs


@remember
class ListFilterBackend(DjangoFilterBackend):
    """Filters only lists. A request for one book ignores the filters."""

    def get_filterset_class(self, view: Any, queryset: QuerySet[Any] | None = None) -> type[FilterSet] | None:
        is_list = view.lookup_url_kwarg not in getattr(view, "kwargs", {})
        filterset: type[FilterSet] | None = super().get_filterset_class(view, queryset) if is_list else None
        return filterset

    def filter_queryset(self, request: Any, queryset: Any, view: Any) -> Any:
        # Django filters and sorts no union().
        books = queryset.model.objects.filter(pk__in=queryset.values("pk")) if queryset.query.combinator else queryset
        return super().filter_queryset(request, books, view)


@remember
class BookFilter(FilterSet):
    author: Filter = ContainsFilter("author", help_text="Case-insensitive partial match on the author.")
    genre: Filter = ContainsFilter("genre", help_text="Case-insensitive partial match on the genre.")


class StrictField(forms.CharField):
    """Converts a text with `parse`. If `parse` returns None, the text is rejected with the error `problem`."""

    def __init__(self, parse: Callable[[str], Any], problem: ErrorDetail, **options: Any) -> None:
        self.parse, self.problem = parse, problem
        super().__init__(**options)

    def to_python(self, value: str | None) -> Any:
        result = None if value is None else self.parse(value)
        if result is None and value is not None:
            raise forms.ValidationError(str(self.problem), self.problem.code)
        return result


class YearFilter(Filter):
    """Compares the year. A bound includes its year."""

    field_class: type[forms.Field] = StrictField

    def __init__(self, lookup: str, **options: Any) -> None:
        super().__init__("year", lookup, parse=parse_integer, problem=INVALID_INTEGER, **options)
        set_filter_schema(self, {"type": "integer"})

    def build_condition_value(self) -> serializers.Field[Any, Any, Any, Any]:
        return StrictIntegerField(required=False)


class AvailableFilter(Filter):
    field_class: type[forms.Field] = StrictField

    def __init__(self, **options: Any) -> None:
        super().__init__("available", parse=BOOLEANS.get, problem=INVALID_BOOLEAN, **options)
        set_filter_schema(self, {"type": "boolean"})

    def filter(self, qs: QuerySet[Book], value: bool | None) -> QuerySet[Book]:
        return qs if value is None else qs.filter(AVAILABILITY_CONDITIONS[value])

    def build_condition_value(self) -> serializers.Field[Any, Any, Any, Any]:
        return StrictBooleanField(required=False)


class ISBNFilter(TextFilter):
    """Finds an ISBN in any notation. A text that is not an ISBN must equal the field `isbn`."""

    def filter(self, qs: QuerySet[Book], value: str) -> QuerySet[Book]:
        if isbn13 := normalize_isbn(value):
            return qs.filter(isbn13=isbn13)
        books: QuerySet[Book] = super().filter(qs, value)
        return books


class WordsFilter(TextFilter):
    """Finds books that contain every word of the text in the field, or in title, author or genre for the field ""."""

    def filter(self, qs: QuerySet[Book], value: str) -> QuerySet[Book]:
        return qs.filter(find_words(split_words(value), self.field_name)) if value else qs


def validate_word_count(text: str) -> None:
    if len(text.split()) > MAX_SEARCH_WORDS:
        raise forms.ValidationError(f"Ensure that there are no more than {MAX_SEARCH_WORDS} words.", "max_words")


@remember
class BookSearchFilter(BookFilter):
    title = LooseFilter("title", help_text="A part of the title. Case, accents and kinds of signs do not count.")
    author = WordsFilter("author", help_text="Every word somewhere in the author.")
    genre = LooseFilter("genre", help_text="A part of the genre.")
    isbn = ISBNFilter("isbn", help_text="The ISBN in any usual writing, with ten digits or thirteen.")
    available = AvailableFilter(help_text="Whether the book is available.")
    year_min = YearFilter("gte", help_text="From this year on.")
    year_max = YearFilter("lte", help_text="Up to this year.")
    q = WordsFilter("", validators=[validate_word_count], help_text="Every word somewhere in title, author or genre.")


@register_selection(SEARCH_FORM)
def select_matching(values: Mapping[str, str]) -> QuerySet[Book]:
    """Returns the books that match the filters. Raises ValidationError, which names all invalid filters."""
    # An operation of another release may have stored a filter that is none here. It must not select all books.
    if unknown := values.keys() - get_filters(BookSearchFilter).keys():
        raise ValidationError(dict.fromkeys(unknown, "There is no such filter."))
    filterset = BookSearchFilter(values, ALL_BOOKS)
    if not filterset.is_valid():
        raise ValidationError(translate_validation(filterset.errors).detail)
    books: QuerySet[Book] = filterset.qs
    return books


def build_fields(filterset: type[FilterSet]) -> dict[str, serializers.Field[Any, Any, Any, Any]]:
    """Returns a field for each filter. With them a JSON body filters books as the query of the list does."""
    filters: Mapping[str, Any] = get_filters(filterset)
    return {name: filter.build_condition_value() for name, filter in filters.items()}


def get_filters(filterset: type[FilterSet]) -> Mapping[str, Filter]:
    filters: Mapping[str, Filter] = filterset.base_filters  # type: ignore[attr-defined]  # its metaclass adds it
    return filters
