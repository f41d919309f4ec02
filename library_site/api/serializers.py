"""Fields that do not coerce values, and serializers that reject unknown fields."""

import re
from collections.abc import Mapping
from datetime import UTC
from typing import Annotated, Any, cast
from weakref import WeakKeyDictionary

import msgspec
from django.db import models
from django.utils.translation import gettext_lazy as _
from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers
from rest_framework.exceptions import ErrorDetail
from rest_framework.validators import ProhibitSurrogateCharactersValidator

from library_site.api.query import suggest_names

NO_NUL_SCHEMA = {"not": {"pattern": "\\u0000"}}
# By class and by field. A class that is made for one request goes with it.
built_fields: WeakKeyDictionary[type, dict[Any, Any]] = WeakKeyDictionary()
RFC3339_PATTERN = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)", re.ASCII)


class SurrogateValidator(ProhibitSurrogateCharactersValidator):
    """REST framework's looks at each character, and its message repeats the input."""

    message = "Surrogate characters are not allowed."

    def __call__(self, value: Any) -> None:
        try:
            str(value).encode()
        except UnicodeEncodeError as error:
            raise serializers.ValidationError(self.message, self.code) from error


@extend_schema_field({"type": "string", **NO_NUL_SCHEMA})
class StringField(serializers.CharField):
    """A JSON string, stored exactly as sent."""

    # The equivalent type for msgspec; each field class in this module has one.
    json_type = str
    default_error_messages = {"string_type": _("Input should be a valid string.")}

    def __init__(self, **options: Any) -> None:
        super().__init__(**{"trim_whitespace": False, "allow_blank": True, **options})
        others = [rule for rule in self.validators if not isinstance(rule, ProhibitSurrogateCharactersValidator)]
        self.validators = [*others, SurrogateValidator()]

    def run_validation(self, data: Any = serializers.empty) -> Any:
        if data is not serializers.empty and not isinstance(data, str):
            self.fail("string_type")
        return super().run_validation(data)


@extend_schema_field({"type": "integer"})
class StrictIntegerField(serializers.IntegerField):
    """A JSON number without a fraction; `1984.0` is one (JSON Schema, 6.1.1)."""

    json_type = int
    default_error_messages = {
        "int_type": _("Input should be a valid integer."),
        "int_from_float": _("Input should be a valid integer, got a number with a fractional part."),
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
class StrictBooleanField(serializers.BooleanField):
    """A JSON boolean."""

    json_type = bool
    default_error_messages = {"bool_type": "Input should be a valid boolean."}

    def run_validation(self, data: Any = serializers.empty) -> Any:
        if data is not serializers.empty and not isinstance(data, bool):
            self.fail("bool_type")
        return super().run_validation(data)


class StrictChoiceField(serializers.ChoiceField):
    """With a message that does not repeat the input: the input may be text that cannot be encoded."""

    def __init__(self, choices: Any, **options: Any) -> None:
        super().__init__(choices, **options)
        self.error_messages["invalid_choice"] = f"Input should be one of {', '.join(choices)}."


class RejectUnknownMixin(serializers.Serializer[Any]):
    """Rejects unknown fields, except those of `ignored_fields`."""

    ignored_fields: frozenset[str] = frozenset()

    def to_internal_value(self, data: Any) -> Any:
        messages = suggest_names(list(data), [*self.fields, *self.ignored_fields]) if isinstance(data, Mapping) else {}
        errors: dict[str, Any] = {name: [ErrorDetail(message, "extra_forbidden")] for name, message in messages.items()}
        try:
            values = super().to_internal_value(data)
        except serializers.ValidationError as error:
            raise serializers.ValidationError(cast("dict[str, Any]", error.detail) | errors) from error
        if errors:
            raise serializers.ValidationError(errors)
        return values


@extend_schema_field({"type": "string", "format": "date-time"})
class UTCDateTimeField(serializers.DateTimeField):
    """RFC 3339, in UTC."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**{"format": "%Y-%m-%dT%H:%M:%S.%fZ", "default_timezone": UTC, **options})


class RFC3339Field(UTCDateTimeField):
    """Only RFC 3339, 5.6: a date without a time, or a time without a zone, is ambiguous."""

    def to_internal_value(self, value: Any) -> Any:
        if not isinstance(value, str) or not RFC3339_PATTERN.fullmatch(value):
            self.fail("invalid", format="YYYY-MM-DDThh:mm:ssZ")
        return super().to_internal_value(value)


@extend_schema_field({"type": "string", "pattern": r"\S", **NO_NUL_SCHEMA})
class NonBlankField(StringField):
    """A text that is not blank."""

    json_type = Annotated[str, msgspec.Meta(pattern=r"\S")]

    def __init__(self, **options: Any) -> None:
        super().__init__(**{"allow_blank": False, **options})

    def run_validation(self, data: Any = serializers.empty) -> Any:
        if isinstance(data, str) and not data.strip():
            self.fail("blank")
        return super().run_validation(data)


class StrictModelSerializer(serializers.ModelSerializer[Any]):
    """A ModelSerializer whose fields do not coerce."""

    serializer_field_mapping = {
        **serializers.ModelSerializer.serializer_field_mapping,
        models.BooleanField: StrictBooleanField,
        models.CharField: StringField,
        models.IntegerField: StrictIntegerField,
    }

    def build_standard_field(self, field_name: str, model_field: Any) -> Any:
        # It depends on the classes alone, and takes two thirds of the time of a validation.
        fields, key = built_fields.setdefault(type(self), {}), (field_name, model_field)
        if key not in fields:
            fields[key] = super().build_standard_field(field_name, model_field)
        field_class, options = fields[key]
        return field_class, {**options}


def make_optional(meta: Any) -> dict[str, dict[str, Any]]:
    """Returns the `extra_kwargs` of a serializer for changes, in which every field of this `Meta` is optional."""
    options = getattr(meta, "extra_kwargs", {})
    return {name: {**options.get(name, {}), "required": False} for name in meta.fields}
