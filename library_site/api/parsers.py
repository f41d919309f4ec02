"""Parsers for JSON bodies."""

import json
import math
import re
from collections.abc import Mapping
from contextlib import suppress
from typing import IO, Any, NoReturn

from rest_framework.exceptions import ParseError
from rest_framework.parsers import BaseParser

from library_site.api.shipped import remember
from library_site.db.integers import parse_integer

# A number with more digits than `int` accepts, or with an exponent too large for a float.
EXTREME_NUMBER = re.compile(r"(?<![0-9])[0-9]{300}|[0-9][eE]\+?[0-9]{3}")


class MalformedJSON(ParseError):
    default_detail = "The body is not valid JSON."
    default_code = "json_invalid"


@remember
class JSONParser(BaseParser):
    """JSON as in RFC 8259: UTF-8 and finite numbers.

    Lone surrogates and integers of any size pass: the fields reject them, so that the error has the field's name.
    """

    media_type = "application/json"

    def parse(
        self, stream: IO[Any], media_type: str | None = None, parser_context: Mapping[str, Any] | None = None
    ) -> Any:
        return parse_json(stream.read())


class MergePatchParser(JSONParser):
    """RFC 7396: null removes a field. Serializers reject null for required fields."""

    media_type = "application/merge-patch+json"


def parse_json(body: bytes) -> Any:
    """Parses a body like JSONParser. Raises ParseError."""
    with suppress(ValueError, RecursionError):
        text = body.decode()
        # A function call for each number would cost the most, and few bodies have numbers that need it.
        if EXTREME_NUMBER.search(text):
            return json.loads(text, parse_int=parse_int, parse_float=parse_float, parse_constant=reject_constant)
        return json.loads(text, parse_constant=reject_constant)
    # The suppressed exception refers to the body, so it is not chained.
    raise MalformedJSON


def parse_int(digits: str) -> int | None:
    return int(digits) if len(digits) < 20 else parse_integer(digits)


def parse_float(digits: str) -> float:
    number = float(digits)
    return number if math.isfinite(number) else reject_constant(digits)


def reject_constant(literal: str) -> NoReturn:
    raise ValueError(f"{literal} is not a JSON number")
