"""Model fields for books that Django does not provide."""

from datetime import UTC, datetime
from typing import Any

from django.core.exceptions import ValidationError
from django.db import connection, models
from django.db.backends.base.base import BaseDatabaseWrapper

from books.book.isbn import normalize_isbn
from books.book.texts import fold


class DerivedField(models.Field):
    """A value that is computed from the field `source` whenever that is written."""

    derive: "staticmethod[[str], str | None]"

    def __init__(self, source: str, **options: Any) -> None:
        self.source = source
        super().__init__(**{"editable": False, "blank": True, **options})

    def deconstruct(self) -> tuple[str, str, Any, dict[str, Any]]:
        name, path, arguments, options = super().deconstruct()
        return name, path, [self.source, *arguments], options

    def pre_save(self, model_instance: models.Model, add: bool) -> str | None:
        value = self.derive(getattr(model_instance, self.source))
        setattr(model_instance, self.attname, value)
        return value


class ISBN13Field(DerivedField, models.CharField):
    """The 13 digits of an ISBN; null if the text is not an ISBN."""

    derive = staticmethod(normalize_isbn)

    def __init__(self, source: str, **options: Any) -> None:
        super().__init__(source, **{"max_length": 13, "null": True, **options})


class CodePointField(models.Field):
    """A text that every database compares and sorts by code point, as SQLite does by default."""

    def db_parameters(self, connection: BaseDatabaseWrapper) -> Any:
        collation = "C" if connection.vendor == "postgresql" else None
        return {**super().db_parameters(connection), "collation": collation}


class ISBNField(CodePointField, models.CharField):
    """A text that can also be searched by prefix: an index by code point serves LIKE (PostgreSQL manual, 11.10)."""

    def db_type(self, connection: BaseDatabaseWrapper) -> str:
        """Uses the long type name on PostgreSQL: Django adds a second index for LIKE to each unique `varchar`."""
        name = str(super().db_type(connection))
        return name.replace("varchar", "character varying") if connection.vendor == "postgresql" else name


class FoldedField(CodePointField, DerivedField, models.TextField):
    derive = staticmethod(fold)


def to_naive_utc(instant: datetime) -> datetime:
    return instant.astimezone(UTC).replace(tzinfo=None)


def adapt_time(naive: datetime) -> Any:
    """Converts a time in UTC, without its time zone, to the value of the driver for a TimestampField."""
    return TimestampField().get_db_prep_value(naive, connection, prepared=True)


class TimestampField(models.DateTimeField):
    """Django's field with a column in UTC that has no time zone. Values are aware: the backend makes them so."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        # Nobody needs to give a time that the library sets.
        super().__init__(*arguments, **{"blank": not options.get("editable", True), **options})

    def get_internal_type(self) -> str:
        return "DateTimeField"

    def db_type(self, connection: BaseDatabaseWrapper) -> str:
        return "timestamp" if connection.vendor == "postgresql" else "text"

    def to_python(self, value: Any) -> datetime | None:
        """A time without a time zone is in UTC, such as those that fixtures of earlier releases have."""
        instant: datetime | None = super().to_python(value)
        return instant.replace(tzinfo=UTC) if instant and instant.tzinfo is None else instant

    def get_prep_value(self, value: Any) -> datetime | None:
        instant: datetime | None = super().get_prep_value(value)
        try:
            return to_naive_utc(instant) if instant else None
        except OverflowError as error:
            raise ValidationError("It is no time in UTC.") from error

    def get_db_prep_value(self, value: Any, connection: BaseDatabaseWrapper, prepared: bool = False) -> Any:
        instant = value if prepared else self.get_prep_value(value)
        # SQLite has no timestamps. Texts of equal length sort like times.
        if connection.vendor == "sqlite" and instant is not None:
            return instant.isoformat(sep=" ", timespec="microseconds")
        return instant


class FormattedTimestamp(models.Func):
    """Formats a timestamp in SQL: `YYYY-MM-DDTHH:MM:SS.ffffff`, then `zone`.

    For many rows, the database formats faster than Python.
    """

    output_field = models.TextField()

    def __init__(self, expression: Any, zone: str = "", **options: Any) -> None:
        super().__init__(expression, zone=zone, **options)

    def as_postgresql(self, compiler: Any, connection: Any, **context: Any) -> Any:
        template = """to_char(%(expressions)s, 'YYYY-MM-DD"T"HH24:MI:SS.US"%(zone)s"')"""
        return self.as_sql(compiler, connection, template=template, **context)

    def as_sqlite(self, compiler: Any, connection: Any, **context: Any) -> Any:
        template = "replace(%(expressions)s, ' ', 'T') || '%(zone)s'"
        return self.as_sql(compiler, connection, template=template, **context)
