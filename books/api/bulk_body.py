"""Splits the body of a bulk request into its items, without parsing all of them at the same time.

Parsed into objects, a body takes up to fifty times its size. So msgspec checks the syntax and finds the items, and each
item is parsed separately.
"""

import re
from codecs import getincrementaldecoder
from typing import Any

import msgspec
from django.conf import settings
from msgspec import UNSET, Raw, UnsetType
from rest_framework.exceptions import ErrorDetail, ValidationError

from library_site.api.negotiation import PayloadTooLarge
from library_site.api.parsers import MalformedJSON, parse_json

MAX_ITEMS = 1_000
# An item with the longest texts, with every character escaped, has 22,000 bytes.
MAX_ITEM_BYTES = 64 * 1024
PART_SIZE = 64 * 1024
ESCAPED_SURROGATE = re.compile(rb"\\u[dD][89a-fA-F]")
# For the first character of a value, an empty value of the same type. All other values are numbers.
EMPTY_VALUES: dict[bytes, Any] = {b"{": {}, b"[": [], b'"': ""}

OPTIONAL_SLICE = (Raw | UnsetType, UNSET)
# Decoded as an array: msgspec ignores the elements after the last field, which shows that there are too many.
ItemList: Any = msgspec.defstruct(
    "OperationList",
    [(f"item_{index}", *OPTIONAL_SLICE) for index in range(MAX_ITEMS + 1)],
    array_like=True,
    gc=False,
)
# Both keep slices: a name can occur a million times, and building a list each time would take seconds.
UsualBody: Any = msgspec.defstruct("UsualBody", [("operations", *OPTIONAL_SLICE)], forbid_unknown_fields=True, gc=False)
AnyObject: Any = msgspec.defstruct("AnyObject", [("operations", *OPTIONAL_SLICE)], gc=False)

decode_usual_body = msgspec.json.Decoder(UsualBody).decode
decode_item_list = msgspec.json.Decoder(ItemList).decode
decode_object = msgspec.json.Decoder(AnyObject).decode
decode_fields = msgspec.json.Decoder(dict[str, Raw]).decode
decode_value = msgspec.json.Decoder(Raw).decode


def split_body(body: bytes) -> Any:
    """Returns the JSON of a body, with a slice of the body for each item. Of too many items it returns one too many.

    Raises ParseError, and PayloadTooLarge if the body has much besides the items.
    """
    require_utf8(body)
    try:
        return split_usual(body) or split_unusual(body)
    except (msgspec.DecodeError, RecursionError):
        pass
    # msgspec rejects a lone surrogate without its position; the serializers name its field.
    if len(body) > settings.DATA_UPLOAD_MAX_MEMORY_SIZE or not ESCAPED_SURROGATE.search(body):
        raise MalformedJSON
    return parse_json(body)


def require_utf8(body: bytes) -> None:
    """Raises ParseError. Checks the body in parts, because decoding can take four times its memory."""
    decoder, parts = getincrementaldecoder("utf-8")(), memoryview(body)
    try:
        for start in range(0, len(body), PART_SIZE):
            decoder.decode(parts[start : start + PART_SIZE])
        decoder.decode(b"", final=True)
    except UnicodeDecodeError:
        decoder.reset()
    else:
        return
    raise MalformedJSON


def split_usual(body: bytes) -> dict[str, Any] | None:
    """Returns None unless the body is an object that contains only a list of items."""
    try:
        items = decode_usual_body(body).operations
    except msgspec.ValidationError:
        return None
    return None if items is UNSET else {"operations": split_items(items)}


def split_unusual(body: bytes) -> Any:
    """Returns a document for which the serializer finds the same errors as for the body."""
    value = decode_value(body)
    if read_first_character(value) != b"{":
        return parse_or_empty(value)
    items = decode_object(body).operations
    others = parse_others(value, items)
    if items is UNSET:
        return others
    slices = split_items(items)
    # The serializer will reject the document. But a number too large for a float makes the whole body malformed.
    for item in slices if isinstance(slices, list) else ():
        parse_or_empty(item)
    return {"operations": slices, **others}


def split_items(items: Raw) -> Any:
    if read_first_character(items) != b"[":
        return parse_or_empty(items)
    fields = msgspec.structs.astuple(decode_item_list(items))
    return [field for field in fields if field is not UNSET]


def parse_others(value: Raw, items: Raw | UnsetType) -> dict[str, Any]:
    """Returns the unknown fields. Raises PayloadTooLarge."""
    size = len(memoryview(value)) - (0 if items is UNSET else len(memoryview(items)))
    if size > MAX_ITEM_BYTES:
        raise PayloadTooLarge(f"What comes beside the operations is over {MAX_ITEM_BYTES} bytes.")
    fields = decode_fields(value)
    return {name: parse_or_empty(field) for name, field in fields.items() if name != "operations"}


def parse_or_empty(value: Raw) -> Any:
    """Parses a small value. A large value becomes an empty one of the same type."""
    if len(memoryview(value)) > MAX_ITEM_BYTES:
        return EMPTY_VALUES.get(read_first_character(value), 0)
    return parse_json(bytes(value))


def read_first_character(value: Raw) -> bytes:
    return bytes(memoryview(value)[:1])


def parse_slice(item: Any) -> Any:
    """Parses one item of a document from `split_body`. Raises ParseError, and ValidationError if it is large."""
    if not isinstance(item, Raw):
        return item
    if len(memoryview(item)) > MAX_ITEM_BYTES:
        message = f"The operation is over {MAX_ITEM_BYTES} bytes."
        raise ValidationError({"op": [ErrorDetail(message, "max_length")]})
    return parse_json(bytes(item))
