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
from rest_framework.exceptions import APIException, ErrorDetail, ValidationError

from library_site.api.parsers import MalformedJSON, parse_json

MAX_ITEMS = 1_000
# An item with the longest texts, with every character escaped, has 22,000 bytes.
MAX_ITEM_BYTES = 64 * 1024
PART_SIZE = 64 * 1024
ESCAPED_SURROGATE = re.compile(rb"\\u[dD][89a-fA-F]")

# Decoded as an array: msgspec ignores the elements after the last field, which shows that there are too many.
ItemList: Any = msgspec.defstruct(
    "OperationList",
    [(f"item_{index}", Raw | UnsetType, UNSET) for index in range(MAX_ITEMS + 1)],
    array_like=True,
    gc=False,
)
# It keeps a slice: the name can occur a million times, and building a list each time would take seconds.
BulkBody: Any = msgspec.defstruct("BulkBody", [("operations", Raw)], forbid_unknown_fields=True, gc=False)

decode_body = msgspec.json.Decoder(BulkBody).decode
decode_items = msgspec.json.Decoder(ItemList).decode


def split_body(body: bytes) -> Any:
    """Returns the JSON of a body, with a slice of the body for each item. Of too many items it returns one too many.

    Raises ParseError, and ValidationError if a large body has anything but the list of items.
    """
    require_utf8(body)
    refusal: APIException = MalformedJSON()
    limit = 0
    try:
        items = msgspec.structs.astuple(decode_items(decode_body(body).operations))
        return {"operations": [item for item in items if item is not UNSET]}
    except msgspec.ValidationError:
        # The serializer names what is wrong.
        limit = MAX_ITEM_BYTES
        refusal = ValidationError(f"A body over {limit} bytes is an object that has operations alone.")
    except (msgspec.DecodeError, RecursionError):
        # msgspec rejects a lone surrogate without its position; the serializers name its field.
        if ESCAPED_SURROGATE.search(body):
            limit = settings.DATA_UPLOAD_MAX_MEMORY_SIZE
    if len(body) > limit:
        raise refusal
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


def parse_slice(item: Any) -> Any:
    """Parses one item of a document from `split_body`. Raises ParseError, and ValidationError if it is large."""
    if not isinstance(item, Raw):
        return item
    if len(memoryview(item)) > MAX_ITEM_BYTES:
        message = f"The operation is over {MAX_ITEM_BYTES} bytes."
        raise ValidationError({"op": [ErrorDetail(message, "max_length")]})
    return parse_json(bytes(item))
