"""Compiles serializers into fast decoders, which parse and validate a JSON body in one step."""

from collections.abc import Callable
from typing import Annotated, Any

import msgspec
from django.core import validators
from rest_framework.fields import Field, empty
from rest_framework.serializers import Serializer
from rest_framework.validators import ProhibitSurrogateCharactersValidator

# Returns the values of a body, or None if the serializer must validate the body and report its errors.
BodyDecoder = Callable[[bytes], dict[str, Any] | None]
# Maps validators with a `limit_value` to msgspec's names.
BOUND_NAMES = {
    validators.MaxLengthValidator: "max_length",
    validators.MinLengthValidator: "min_length",
    validators.MaxValueValidator: "le",
    validators.MinValueValidator: "ge",
}
# A decoded string never has such characters: msgspec rejects lone surrogates, and `decode_body` rejects NUL.
IMPLIED_VALIDATORS = (validators.ProhibitNullCharactersValidator, ProhibitSurrogateCharactersValidator)
# The type of ignored fields. msgspec skips fields without a type, and would accept invalid UTF-8 and numbers that are
# too large in them.
IGNORED_TYPE = bool | int | str | None | msgspec.UnsetType
ESCAPED_NUL = b"\\u0000"


class NotCompilable(Exception):
    """The serializer has a rule that cannot be compiled."""


def make_decoder(serializer: type[Serializer[Any]]) -> BodyDecoder:
    """Returns a decoder that accepts only valid bodies, with the serializer's values. Raises NotCompilable.

    The serializer has no rules but those of its fields, and rejects unknown ones. A body may contain its
    `ignored_fields`: clients send a whole book back.
    """
    fields = serializer().fields
    struct_fields = [compile_field(name, field) for name, field in fields.items()]
    ignored_fields: frozenset[str] = getattr(serializer, "ignored_fields", frozenset()) - fields.keys()
    struct_fields += [(name, IGNORED_TYPE, msgspec.UNSET) for name in sorted(ignored_fields)]
    sources = [str(field.source) for field in fields.values()]
    struct = msgspec.defstruct(serializer.__name__, struct_fields, forbid_unknown_fields=True, kw_only=True, gc=False)
    decode = msgspec.json.Decoder(struct).decode

    def decode_body(body: bytes) -> dict[str, Any] | None:
        if ESCAPED_NUL in body:
            return None
        try:
            body_struct = decode(body)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            return None
        # The values of ignored fields come last, and have no source.
        values = zip(sources, msgspec.structs.astuple(body_struct), strict=False)
        return {source: value for source, value in values if value is not msgspec.UNSET}

    return decode_body


def compile_field(name: str, field: Field[Any, Any, Any, Any]) -> Any:
    """Returns a field for `msgspec.defstruct`. Raises NotCompilable."""
    # Only the exact class: a subclass can have another rule.
    json_type = vars(type(field)).get("json_type")
    has_unknown_option = (
        not str(field.source).isidentifier() or field.read_only or field.default is not empty or field.allow_null
    )
    if json_type is None or has_unknown_option or getattr(field, "trim_whitespace", False):
        raise NotCompilable(name)
    field_type: Any = Annotated[json_type, msgspec.Meta(**compile_bounds(field))]
    return (name, field_type) if field.required else (name, field_type | msgspec.UnsetType, msgspec.UNSET)


def compile_bounds(field: Field[Any, Any, Any, Any]) -> dict[str, Any]:
    """Raises NotCompilable."""
    rules: list[Any] = [rule for rule in field.validators if not isinstance(rule, IMPLIED_VALIDATORS)]
    if unknown_rules := [rule for rule in rules if type(rule) not in BOUND_NAMES]:
        raise NotCompilable(unknown_rules)
    bounds = [(BOUND_NAMES[type(rule)], rule.limit_value) for rule in rules]
    bounds += [] if getattr(field, "allow_blank", True) else [("min_length", 1)]
    if len(bounds) > len(dict(bounds)):
        # If two bounds had the same name, the last would win and not the stricter.
        raise NotCompilable(bounds)
    return dict(bounds)
