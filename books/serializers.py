"""The rules of a book's members (specification, Section 2), without coercion: the database's bounds, explained."""

from collections.abc import Mapping
from typing import Any, cast

from django.db import models
from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers
from rest_framework.exceptions import ErrorDetail
from rest_framework.validators import ProhibitSurrogateCharactersValidator

from books.models import Book
from library_site.api.suggestions import unknown

NO_NUL = {"not": {"pattern": "\\u0000"}}


@extend_schema_field({"type": "string", **NO_NUL})
class Text(serializers.CharField):
    """A JSON string, kept exactly as sent."""

    # Of each of these classes: what msgspec knows as much by.
    json_type = str
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

    json_type = int
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


@extend_schema_field({"type": "boolean"})
class Flag(serializers.BooleanField):
    """A JSON boolean."""

    json_type = bool
    default_error_messages = {"bool_type": "Input should be a valid boolean."}

    def run_validation(self, data: Any = serializers.empty) -> Any:
        if data is not serializers.empty and not isinstance(data, bool):
            self.fail("bool_type")
        return super().run_validation(data)


class StrictSerializer(serializers.ModelSerializer[Book]):
    """A ModelSerializer whose fields do not coerce."""

    serializer_field_mapping = {
        **serializers.ModelSerializer.serializer_field_mapping,
        models.CharField: Text,
        models.IntegerField: Integer,
    }


class NewBookSerializer(StrictSerializer):
    """The members that make a book, texts kept exactly as sent."""

    class Meta:
        model = Book
        fields: tuple[str, ...] = ("title", "author", "year", "isbn", "genre")
        # The database's constraint decides on isbn; a SELECT before it would only race.
        extra_kwargs: dict[str, dict[str, Any]] = {"isbn": {"validators": []}}


def all_optional(meta: type[NewBookSerializer.Meta]) -> dict[str, dict[str, Any]]:
    """The `extra_kwargs` of a change, for which the members that make a book may be absent."""
    return {name: {**meta.extra_kwargs.get(name, {}), "required": False} for name in NewBookSerializer.Meta.fields}


class Closed(serializers.Serializer[Any]):
    """Refuses members that it does not know; those of `passed_over` it does not hear."""

    passed_over: frozenset[str] = frozenset()

    def to_internal_value(self, data: Any) -> Any:
        strange = unknown(list(data), [*self.fields, *self.passed_over]) if isinstance(data, Mapping) else {}
        problems: dict[str, Any] = {name: [ErrorDetail(words, "extra_forbidden")] for name, words in strange.items()}
        try:
            values = super().to_internal_value(data)
        except serializers.ValidationError as error:
            raise serializers.ValidationError(cast("dict[str, Any]", error.detail) | problems) from error
        if problems:
            raise serializers.ValidationError(problems)
        return values
