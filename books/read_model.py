"""Reads books without model objects. A serializer determines the columns to select and the JSON to return."""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from functools import cache, lru_cache, partial
from itertools import starmap
from operator import attrgetter, itemgetter
from typing import Any, ClassVar, cast

import msgspec
from django.db import connection
from django.db.models import Expression, F, QuerySet
from rest_framework.fields import DateTimeField, Field
from rest_framework.serializers import ListSerializer, Serializer

from books.fields import FormattedTimestamp
from books.models import Book
from library_site.api.shipped import remember
from library_site.db.sql import Row

Column = Expression | F | str
# Clients choose the fields. The cache keeps so many combinations.
CACHED_SETS = 100


class BookEncoder:
    """Books as rows, and as structs that msgspec encodes. They have the fields of the serializer, in its order."""

    def __init__(self, serializer: type[Serializer[Book]], names: Collection[str] | None = None) -> None:
        fields = serializer().fields
        self.serializer = serializer
        self.fields = {name: field for name, field in fields.items() if names is None or name in names}
        self.names = list(self.fields)
        sources = [str(field.source) for field in self.fields.values()]
        # Returns the fields of a row.
        self.to_row: Callable[[Any], Row] = make_getter(sources)
        # Removes the extra columns of a row.
        self.select_fields: Callable[[Row], Row] = itemgetter(slice(len(self.names)))
        self.columns = [select_column(field) for field in self.fields.values()]
        self.time_zones = {
            name: zone_suffix(field) for name, field in self.fields.items() if isinstance(field, DateTimeField)
        }
        self.struct = msgspec.defstruct(serializer.__name__, self.names, gc=False)
        self.is_whole = names is None
        self.make_partial = lru_cache(CACHED_SETS)(partial(BookEncoder, serializer))

    def with_fields(self, names: Iterable[str]) -> "BookEncoder":
        """Returns an encoder with only these fields, all of which exist."""
        return self.make_partial(frozenset(names))

    def read(self, books: Any) -> list[msgspec.Struct]:
        """Returns structs of books: of model objects, rows, or a queryset or page that is not read yet."""
        is_unread = hasattr(books, "values_list") and getattr(books, "_result_cache", None) is None
        return self.to_structs(books.values_list(*self.columns) if is_unread else map(self.to_row, books))

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


@remember
class BookListSerializer(ListSerializer[Book]):
    def to_representation(self, data: Any) -> Any:
        child = cast("ReadSerializer", self.child)
        is_own = type(child).to_representation is not ReadSerializer.to_representation
        encoder = None if is_own else child.find_own_encoder()
        if not encoder:
            return super().to_representation(data)
        return list(map(msgspec.structs.asdict, encoder.read(data)))


class ReadSerializer(Serializer[Book]):
    """With `only`, it has only these fields. A BookEncoder shows the books of a class with `is_encoded`."""

    # Whether its fields show their columns unchanged. A subclass may show something else, so it says it again.
    is_encoded: ClassVar[bool] = False

    def __init__(self, *arguments: Any, only: Collection[str] | None = None, **options: Any) -> None:
        self.only = only
        super().__init__(*arguments, **options)

    def get_fields(self) -> dict[str, Field[Any, Any, Any, Any]]:
        fields = super().get_fields()
        return {name: field for name, field in fields.items() if self.only is None or name in self.only}

    def to_representation(self, instance: Any) -> Any:
        encoder = self.find_own_encoder()
        if not encoder:
            return super().to_representation(instance)
        return msgspec.structs.asdict(encoder.to_struct(instance))

    def find_own_encoder(self) -> BookEncoder | None:
        encoder = find_encoder(type(self))
        return encoder.with_fields(self.only) if encoder and self.only is not None else encoder


def find_encoder(serializer: type[Serializer[Book]]) -> BookEncoder | None:
    """Returns None without `is_encoded` of this very class: REST framework serializes."""
    return make_encoder(serializer) if vars(serializer).get("is_encoded") else None


@cache
def make_encoder(serializer: type[Serializer[Book]]) -> BookEncoder:
    return BookEncoder(serializer)


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
