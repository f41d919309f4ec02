"""Compiles serializers into fast decoders, which read and check a JSON body in one step."""

from collections.abc import Callable
from typing import Annotated, Any

import msgspec
from django.core import validators
from rest_framework.fields import Field, empty
from rest_framework.serializers import Serializer
from rest_framework.validators import ProhibitSurrogateCharactersValidator

from library_site.api.serializers import RejectUnknownMixin

# Returns a body's values, or None where the serializer must check the body and word its errors.
BodyDecoder = Callable[[bytes], dict[str, Any] | None]
# From validators with a `limit_value` to msgspec's names.
BOUND_NAMES = {
    validators.MaxLengthValidator: "max_length",
    validators.MinLengthValidator: "min_length",
    validators.MaxValueValidator: "le",
    validators.MinValueValidator: "ge",
}
# No decoded text has such characters: msgspec refuses lone surrogates, and `decode_body` refuses NUL.
IMPLIED_VALIDATORS = (validators.ProhibitNullCharactersValidator, ProhibitSurrogateCharactersValidator)
# The values of members that are read but not written. A type makes msgspec check them: it skips what has none, and
# would then accept invalid UTF-8 and numbers that are too large.
IGNORED_TYPE = bool | int | str | None | msgspec.UnsetType
ESCAPED_NUL = b"\\u0000"


class NotCompilable(Exception):
    """The serializer has a rule that cannot be compiled."""


def make_decoder(serializer: type[Serializer[Any]]) -> BodyDecoder:
    """Returns a decoder that accepts only what the serializer accepts, with the same values. Raises NotCompilable.

    The members of the serializer's `ignored_fields` may be in a body, as in a book that is sent back as it was read.
    """
    require_compilable(serializer)
    fields = serializer().fields
    members = [compile_field(name, field) for name, field in fields.items()]
    ignored_fields: frozenset[str] = getattr(serializer, "ignored_fields", frozenset()) - fields.keys()
    members += [(name, IGNORED_TYPE, msgspec.UNSET) for name in sorted(ignored_fields)]
    sources = [str(field.source) for field in fields.values()]
    struct = msgspec.defstruct(serializer.__name__, members, forbid_unknown_fields=True, kw_only=True, gc=False)
    decode = msgspec.json.Decoder(struct).decode

    def decode_body(body: bytes) -> dict[str, Any] | None:
        if ESCAPED_NUL in body:
            return None
        try:
            body_struct = decode(body)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            return None
        # The values of ignored members come last, and have no source.
        values = zip(sources, msgspec.structs.astuple(body_struct), strict=False)
        return {source: value for source, value in values if value is not msgspec.UNSET}

    return decode_body


def require_compilable(serializer: type[Serializer[Any]]) -> None:
    """Raises NotCompilable if the serializer has rules besides its fields and the refusal of unknown members."""
    instance = serializer()
    has_validators = any(hasattr(serializer, f"validate_{name}") for name in instance.fields) or instance.validators
    has_known_reader = serializer.to_internal_value in (
        Serializer.to_internal_value,
        RejectUnknownMixin.to_internal_value,
    )
    has_default_checks = (
        serializer.validate is Serializer.validate and serializer.run_validation is Serializer.run_validation
    )
    if has_validators or not has_known_reader or not has_default_checks:
        raise NotCompilable(serializer.__name__)


def compile_field(name: str, field: Field[Any, Any, Any, Any]) -> Any:
    """Returns a field for `msgspec.defstruct`. Raises NotCompilable."""
    # Only of the class itself: a subclass can have another rule.
    json_type = vars(type(field)).get("json_type")
    has_unknown_option = (
        not str(field.source).isidentifier() or field.read_only or field.default is not empty or field.allow_null
    )
    if json_type is None or has_unknown_option or getattr(field, "trim_whitespace", False):
        raise NotCompilable(name)
    member_type: Any = Annotated[json_type, msgspec.Meta(**compile_bounds(field))]
    return (name, member_type) if field.required else (name, member_type | msgspec.UnsetType, msgspec.UNSET)


def compile_bounds(field: Field[Any, Any, Any, Any]) -> dict[str, Any]:
    """Raises NotCompilable."""
    rules: list[Any] = [rule for rule in field.validators if not isinstance(rule, IMPLIED_VALIDATORS)]
    if unknown_rules := [rule for rule in rules if type(rule) not in BOUND_NAMES]:
        raise NotCompilable(unknown_rules)
    bounds = [(BOUND_NAMES[type(rule)], rule.limit_value) for rule in rules]
    bounds += [] if getattr(field, "allow_blank", True) else [("min_length", 1)]
    if len(bounds) > len(dict(bounds)):
        # Of two bounds with one name the last would win, not the stricter.
        raise NotCompilable(bounds)
    return dict(bounds)
