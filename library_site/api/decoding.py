"""Bodies that a serializer would take as they are, read in one step by rules taken from it."""

from collections.abc import Callable, Mapping
from typing import Annotated, Any

import msgspec
from django.core import validators
from rest_framework.fields import Field, empty
from rest_framework.serializers import Serializer
from rest_framework.validators import ProhibitSurrogateCharactersValidator

from library_site.api.serializers import RejectUnknownMixin

# What a body says, or None where the serializer must decide, and say why.
BodyDecoder = Callable[[bytes], dict[str, Any] | None]
# What they bound is in their limit_value.
BOUND_NAMES = {
    validators.MaxLengthValidator: "max_length",
    validators.MinLengthValidator: "min_length",
    validators.MaxValueValidator: "le",
    validators.MinValueValidator: "ge",
}
# No text that is decoded has such characters: msgspec takes no lone surrogates, and NUL is looked for.
IMPLIED_VALIDATORS = (validators.ProhibitNullCharactersValidator, ProhibitSurrogateCharactersValidator)
ESCAPED_NUL = b"\\u0000"


class NotCompilable(Exception):
    """The serializer has a rule that is not known here."""


def make_decoder(serializer: type[Serializer[Any]]) -> BodyDecoder:
    """Takes nothing that the serializer would not take, and understands it alike. Raises NotCompilable."""
    require_compilable(serializer)
    members = [compile_field(name, field) for name, field in serializer().fields.items()]
    struct = msgspec.defstruct(serializer.__name__, members, forbid_unknown_fields=True, kw_only=True, gc=False)
    names, decode = struct.__struct_fields__, msgspec.json.Decoder(struct).decode

    def decoded(body: bytes) -> dict[str, Any] | None:
        if ESCAPED_NUL in body:
            return None
        try:
            found = decode(body)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            return None
        values = ((name, getattr(found, name)) for name in names)
        return {name: value for name, value in values if value is not msgspec.UNSET}

    return decoded


def make_decoders(serializers: Mapping[str, type[Serializer[Any]]], *actions: str) -> dict[str, BodyDecoder]:
    """By action, of these or of all. Raises NotCompilable."""
    return {action: make_decoder(serializers[action]) for action in actions or serializers}


def require_compilable(serializer: type[Serializer[Any]]) -> None:
    """Raises NotCompilable where it is more than its fields, but for members that it refuses."""
    made = serializer()
    ruled = any(hasattr(serializer, f"validate_{name}") for name in made.fields) or made.validators
    reads = serializer.to_internal_value in (Serializer.to_internal_value, RejectUnknownMixin.to_internal_value)
    checks = serializer.validate is Serializer.validate and serializer.run_validation is Serializer.run_validation
    if ruled or not reads or not checks:
        raise NotCompilable(serializer.__name__)


def compile_field(name: str, field: Field[Any, Any, Any, Any]) -> Any:
    """As `msgspec.defstruct` takes it. Raises NotCompilable."""
    # Of its own class: one that inherits it may have another rule.
    kind = vars(type(field)).get("json_type")
    more = field.source != name or field.read_only or field.default is not empty or field.allow_null
    if kind is None or more or getattr(field, "trim_whitespace", False):
        raise NotCompilable(name)
    limited: Any = Annotated[kind, msgspec.Meta(**compile_bounds(field))]
    return (name, limited) if field.required else (name, limited | msgspec.UnsetType, msgspec.UNSET)


def compile_bounds(field: Field[Any, Any, Any, Any]) -> dict[str, Any]:
    """Raises NotCompilable."""
    rules: list[Any] = [rule for rule in field.validators if not isinstance(rule, IMPLIED_VALIDATORS)]
    if unknown := [rule for rule in rules if type(rule) not in BOUND_NAMES]:
        raise NotCompilable(unknown)
    found = [(BOUND_NAMES[type(rule)], rule.limit_value) for rule in rules]
    found += [] if getattr(field, "allow_blank", True) else [("min_length", 1)]
    if len(found) > len(dict(found)):
        # The last of two would be taken for the tightest.
        raise NotCompilable(found)
    return dict(found)
