"""The rules of a book's members (specification, Section 2), without coercion: the database's bounds, explained."""

from typing import Any

from django.db import models
from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers
from rest_framework.validators import ProhibitSurrogateCharactersValidator

from books.models import Book

NO_NUL = {"not": {"pattern": "\\u0000"}}


@extend_schema_field({"type": "string", **NO_NUL})
class Text(serializers.CharField):
    """A JSON string, kept exactly as sent."""

    default_error_messages = {"string_type": "Input should be a valid string."}

    def __init__(self, **options: Any) -> None:
        super().__init__(**{"trim_whitespace": False, "allow_blank": True, **options})
        for validator in self.validators:
            if isinstance(validator, ProhibitSurrogateCharactersValidator):
                # The stock message repeats the input.
                validator.message = "Surrogate characters are not allowed."

    def run_validation(self, data: Any = serializers.empty) -> Any:
        if data is not serializers.empty and not isinstance(data, str):
            self.fail("string_type")
        return super().run_validation(data)


@extend_schema_field({"type": "integer"})
class Integer(serializers.IntegerField):
    """A JSON number without a fraction; `1984.0` is one (JSON Schema, 6.1.1)."""

    default_error_messages = {
        "int_type": "Input should be a valid integer.",
        "int_from_float": "Input should be a valid integer, got a number with a fractional part.",
    }

    def run_validation(self, data: Any = serializers.empty) -> Any:
        if data is not serializers.empty and (isinstance(data, bool) or not isinstance(data, int | float)):
            self.fail("int_type")
        return super().run_validation(data)

    def to_internal_value(self, data: float | str) -> int:
        if data != int(data):
            self.fail("int_from_float")
        return int(data)


@extend_schema_field({"type": "string", "pattern": r"^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}\.\d{6}$"})
class UTCTime(serializers.DateTimeField):
    """UTC, ISO 8601 without a zone designator (specification, Section 2)."""


class StrictSerializer(serializers.ModelSerializer[Book]):
    """A ModelSerializer whose fields do not coerce."""

    serializer_field_mapping = {
        **serializers.ModelSerializer.serializer_field_mapping,
        models.CharField: Text,
        models.IntegerField: Integer,
    }


class BookSerializer(StrictSerializer):
    """A book as every answer shows it."""

    created_at = UTCTime()

    class Meta:
        model = Book
        fields = ("id", "title", "author", "year", "isbn", "genre", "available", "created_at")
        extra_kwargs = {"available": {"required": True}}


class BookCreateSerializer(StrictSerializer):
    """What a creation takes; a new book is available."""

    class Meta:
        model = Book
        fields = ("title", "author", "year", "isbn", "genre")
        # The database's constraint decides on isbn; a SELECT before it would only race.
        extra_kwargs: dict[str, dict[str, Any]] = {"isbn": {"validators": []}}


class BookUpdateSerializer(BookCreateSerializer):
    """What a change takes: every member may be absent."""

    class Meta(BookCreateSerializer.Meta):
        extra_kwargs = {
            name: {**BookCreateSerializer.Meta.extra_kwargs.get(name, {}), "required": False}
            for name in BookCreateSerializer.Meta.fields
        }
