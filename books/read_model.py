"""Reads books without model objects. A serializer determines the columns to select and the JSON to return."""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from functools import cache, lru_cache
from itertools import starmap
from operator import attrgetter, itemgetter
from typing import Any

import msgspec
from django.db import connection
from django.db.models import Expression, F, QuerySet
from rest_framework.fields import DateTimeField, Field
from rest_framework.serializers import Serializer

from books.fields import FormattedTimestamp
from books.models import Book
from library_site.api.shipped import definitions
from library_site.db.sql import Row

COLUMNS = {field.attname for field in Book._meta.concrete_fields}
Column = Expression | F | str
# Clients choose the fields. The cache keeps so many combinations.
CACHED_SETS = 100


class BookEncoder:
    """Books as rows, and as structs that msgspec encodes. They have the fields of the serializer, in its order."""

    def __init__(self, serializer: "type[ReadSerializer]", names: frozenset[str] | None = None) -> None:
        fields = serializer(only=names).fields
        self.names = list(fields)
        sources = [str(field.source) for field in fields.values()]
        # Returns the fields of a row.
        self.to_row: Callable[[Any], Row] = make_getter(sources)
        # Removes the extra columns of a row.
        self.select_fields: Callable[[Row], Row] = itemgetter(slice(len(self.names)))
        self.columns = [select_column(field) for field in fields.values()]
        self.time_zones = {
            name: zone_suffix(field) for name, field in fields.items() if isinstance(field, DateTimeField)
        }
        self.struct = msgspec.defstruct(serializer.__name__, self.names, gc=False)
        self.is_whole = names is None

    def to_structs(self, rows: Iterable[Row]) -> list[msgspec.Struct]:
        """Converts rows to structs, without the extra columns."""
        books = list(starmap(self.struct, map(self.select_fields, rows)))
        for name, zone in self.time_zones.items():
            format_times(books, name, zone)
        return books

    def to_struct(self, book: Any) -> msgspec.Struct:
        """`book` is a model object or a row."""
        [struct] = self.to_structs([self.to_row(book)])
        return struct


class ReadSerializer(Serializer[Book]):
    """With `only`, it has only these fields."""

    def __init__(self, *arguments: Any, only: Collection[str] | None = None, **options: Any) -> None:
        self.only = None if only is None else frozenset(only)
        super().__init__(*arguments, **options)

    def get_fields(self) -> dict[str, Field[Any, Any, Any, Any]]:
        fields = super().get_fields()
        return {name: field for name, field in fields.items() if self.only is None or name in self.only}

    def to_representation(self, instance: Any) -> Any:
        encoder = find_encoder(type(self)) if self.only is None else find_partial_encoder(type(self), self.only)
        if not encoder:
            return super().to_representation(instance)
        return msgspec.structs.asdict(encoder.to_struct(instance))


@cache
def find_encoder(serializer: type[ReadSerializer]) -> BookEncoder | None:
    """Returns None if the serializer does not ship, or has other fields than columns."""
    is_shown = serializer in definitions and all(field.source in COLUMNS for field in serializer().fields.values())
    return BookEncoder(serializer) if is_shown else None


@lru_cache(CACHED_SETS)
def find_partial_encoder(serializer: type[ReadSerializer], names: frozenset[str]) -> BookEncoder | None:
    return BookEncoder(serializer, names) if find_encoder(serializer) else None


def show_stored(serializer: type[Serializer[Book]], values: Mapping[str, Any] | None) -> dict[str, Any] | None:
    """Returns stored values of a book under the names and in the order of the fields, with formatted times."""
    if values is None:
        return None
    return {
        name: format_time(datetime.fromisoformat(values[source])) if is_time else values[source]
        for name, source, is_time in list_sources(serializer)
        if source in values
    }


@cache
def list_sources(serializer: type[Serializer[Book]]) -> Sequence[tuple[str, str, bool]]:
    return [(name, str(field.source), isinstance(field, DateTimeField)) for name, field in serializer().fields.items()]


def has_only_conditions(books: QuerySet[Book]) -> bool:
    """Whether a queryset selects all columns of books, and its conditions use only these."""
    query = books.query
    has_more = (
        books.model is not Book
        or query.annotations
        or query.distinct
        or query.extra
        or query.extra_tables
        or query.combinator
        or query.select_related
        or len(query.alias_map) > 1
        or vars(books)["_prefetch_related_lookups"]
    )
    return not has_more and query.default_cols and query.deferred_loading[1]


def make_getter(names: Sequence[str]) -> Callable[[Any], Row]:
    """Returns a function that returns these attributes. `attrgetter` does not return a tuple for a single name."""
    if len(names) == 1:
        return lambda book: (getattr(book, names[0]),)
    return attrgetter(*names)


def format_times(books: Sequence[msgspec.Struct], name: str, zone: str) -> None:
    """Converts times that msgspec encodes differently: it omits a zero fraction, and the zone of a naive time.

    Compiled routes read times without a zone from PostgreSQL; all other times have one.
    """
    time_zone = UTC if zone else None
    for book in books:
        time: datetime | str = getattr(book, name)
        # SQLite has already formatted it.
        if isinstance(time, datetime):
            if not time.microsecond:
                setattr(book, name, format_time(time, zone))
            elif time.tzinfo is not time_zone:
                # Four times as fast as `replace`.
                setattr(book, name, datetime.combine(time, time.time(), time_zone))


def format_time(time: datetime, zone: str = "Z") -> str:
    """Formats a time in UTC."""
    return time.replace(tzinfo=None).isoformat(timespec="microseconds") + zone


def select_column(field: Field[Any, Any, Any, Any]) -> Column:
    """Django compiles a name faster than an expression. SQLite formats times faster than Python."""
    source = str(field.source)
    is_formatted = connection.vendor == "sqlite" and isinstance(field, DateTimeField)
    return FormattedTimestamp(source, zone_suffix(field)) if is_formatted else source


def zone_suffix(field: Field[Any, Any, Any, Any]) -> str:
    return "Z" if str(getattr(field, "format", "")).endswith("Z") else ""
