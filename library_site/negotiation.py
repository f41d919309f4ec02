"""What the API reads and writes: JSON, whatever `Accept` or `?format=` say."""

import json
import math
from collections.abc import Iterable, Mapping
from typing import IO, Any, NoReturn

from django.conf import settings
from rest_framework.exceptions import APIException, ParseError
from rest_framework.negotiation import BaseContentNegotiation
from rest_framework.parsers import BaseParser
from rest_framework.renderers import BaseRenderer
from rest_framework.request import Request

from books.integers import integer


class PayloadTooLarge(APIException):
    """RFC 9110, 15.5.14."""

    status_code = 413
    default_detail = f"The body is over {settings.DATA_UPLOAD_MAX_MEMORY_SIZE} bytes."
    default_code = "payload_too_large"


class JSONNegotiation(BaseContentNegotiation):
    def select_parser(self, request: Request, parsers: Iterable[BaseParser]) -> BaseParser | None:
        """A body without a Content-Type is read by the first parser (RFC 9110, 8.3)."""
        if int(request.META.get("CONTENT_LENGTH") or 0) > settings.DATA_UPLOAD_MAX_MEMORY_SIZE:
            raise PayloadTooLarge
        if not request.content_type:
            return next(iter(parsers))
        media_type = request.content_type.partition(";")[0].strip().lower()
        return next((parser for parser in parsers if parser.media_type == media_type), None)

    def select_renderer(
        self, request: Request, renderers: Iterable[BaseRenderer], format_suffix: str | None = None
    ) -> tuple[BaseRenderer, str]:
        renderer = next(iter(renderers))
        return renderer, renderer.media_type


class JSONParser(BaseParser):
    """JSON as in RFC 8259: UTF-8 and finite numbers. What fields should name passes: lone surrogates, any integer."""

    media_type = "application/json"

    def parse(
        self, stream: IO[Any], media_type: str | None = None, parser_context: Mapping[str, Any] | None = None
    ) -> Any:
        try:
            return json.loads(stream.read().decode(), parse_int=integer, parse_float=finite, parse_constant=refused)
        except (ValueError, RecursionError) as error:
            raise ParseError("The body is not valid JSON.", code="json_invalid") from error


def finite(digits: str) -> float:
    number = float(digits)
    return number if math.isfinite(number) else refused(digits)


def refused(literal: str) -> NoReturn:
    raise ValueError(f"{literal} is not a JSON number")
