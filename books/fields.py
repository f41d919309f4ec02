"""Columns of the book table that Django has no field for."""

import unicodedata
from datetime import UTC, datetime
from typing import Any

from django.core.exceptions import ValidationError
from django.db import models
from django.db.backends.base.base import BaseDatabaseWrapper

from books.isbn import normalize_isbn


def fold(text: str) -> str:
    """The form in which texts are compared: NFC and case-folded, accents kept (Unicode, 3.13 and UAX 15)."""
    if text.isascii():
        return text.lower()
    return unicodedata.normalize("NFC", unicodedata.normalize("NFC", text).casefold())


class DerivedField(models.Field):
    """What follows from another field's text, written whenever that is; `of` names that field."""

    derive: "staticmethod[[str], str | None]"

    def __init__(self, of: str, **options: Any) -> None:
        self.source = of
        super().__init__(**{"editable": False, **options})

    def deconstruct(self) -> tuple[str, str, Any, dict[str, Any]]:
        name, path, arguments, options = super().deconstruct()
        return name, path, [self.source, *arguments], options

    def pre_save(self, model_instance: models.Model, add: bool) -> str | None:
        value = self.derive(getattr(model_instance, self.source))
        setattr(model_instance, self.attname, value)
        return value


class ISBN13Field(DerivedField, models.CharField):
    """The canonical form of an ISBN; null for a text that is none."""

    derive = staticmethod(normalize_isbn)

    def __init__(self, of: str, **options: Any) -> None:
        super().__init__(of, **{"max_length": 13, "null": True, **options})


class FoldedField(DerivedField, models.TextField):
    """A text, folded. Ordered by code point on every database."""

    derive = staticmethod(fold)

    def db_parameters(self, connection: BaseDatabaseWrapper) -> Any:
        collation = "C" if connection.vendor == "postgresql" else None
        return {**super().db_parameters(connection), "collation": collation}


def to_naive_utc(instant: datetime) -> datetime:
    return instant.astimezone(UTC).replace(tzinfo=None) if instant.tzinfo else instant


class TimestampField(models.DateTimeField):
    """An instant in UTC without a zone: naive when read, made naive when written."""

    def get_internal_type(self) -> str:
        return "TimestampField"

    def db_type(self, connection: BaseDatabaseWrapper) -> str:
        return "timestamp" if connection.vendor == "postgresql" else "text"

    def from_db_value(self, value: datetime | str | None, *_: object) -> datetime | None:
        return datetime.fromisoformat(value) if isinstance(value, str) else value

    def get_prep_value(self, value: Any) -> datetime | None:
        instant: datetime | None = self.to_python(value)
        try:
            return to_naive_utc(instant) if instant else None
        except OverflowError as error:
            raise ValidationError("It is no time in UTC.") from error

    def get_db_prep_value(self, value: Any, connection: BaseDatabaseWrapper, prepared: bool = False) -> Any:
        instant = value if prepared else self.get_prep_value(value)
        # SQLite has no timestamps; texts of one width sort as the instants do.
        if connection.vendor == "sqlite" and instant is not None:
            return instant.isoformat(sep=" ", timespec="microseconds")
        return instant


class FormattedTimestamp(models.Func):
    """The SQL text `YYYY-MM-DDTHH:MM:SS.ffffff` of a timestamp, then `zone`.

    Formatting in the database spares Python the rows.
    """

    output_field = models.TextField()

    def __init__(self, expression: Any, zone: str = "", **options: Any) -> None:
        super().__init__(expression, zone=zone, **options)

    def as_postgresql(self, compiler: Any, connection: Any, **context: Any) -> Any:
        template = 'to_char(%(expressions)s, \'YYYY-MM-DD"T"HH24:MI:SS.US"%(zone)s"\')'
        return self.as_sql(compiler, connection, template=template, **context)

    def as_sqlite(self, compiler: Any, connection: Any, **context: Any) -> Any:
        template = "replace(%(expressions)s, ' ', 'T') || '%(zone)s'"
        return self.as_sql(compiler, connection, template=template, **context)


class SelectedTimestamp(FormattedTimestamp):
    """The same, where the database is quicker at it than Python: PostgreSQL's is the timestamp as it is."""

    def as_postgresql(self, compiler: Any, connection: Any, **context: Any) -> Any:
        return self.as_sql(compiler, connection, template="%(expressions)s", **context)
