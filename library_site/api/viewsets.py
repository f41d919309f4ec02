"""The base of all viewsets: the order of refusals, and the reading of bodies."""

from collections.abc import Mapping
from contextlib import AbstractContextManager, nullcontext
from threading import Lock
from typing import Any, ClassVar

from django.conf import settings
from django.http import HttpResponse
from rest_framework.exceptions import MethodNotAllowed, ParseError, UnsupportedMediaType
from rest_framework.parsers import BaseParser
from rest_framework.request import Request
from rest_framework.serializers import Serializer
from rest_framework.viewsets import GenericViewSet

from library_site.api.decoding import BodyDecoder
from library_site.api.parsers import MergePatchParser, parse_json
from library_site.api.responses import make_empty_response
from library_site.http.fast_path import FAILURE_KEY
from library_site.http.origins import require_own_origin

LARGE_BODY_BYTES = 64 * 1024
LARGE_BODY_LOCK = Lock()


class APIViewSet(GenericViewSet[Any]):
    """A viewset names the serializers of its bodies, by action, and decoders made of some of them."""

    body_serializers: ClassVar[Mapping[str, type[Serializer[Any]]]]
    decoders: ClassVar[Mapping[str, BodyDecoder]] = {}

    def initial(self, request: Request, *arguments: Any, **options: Any) -> None:
        """Answers 405 first, then 400 (version), 401, 403 and 429, then 413 and 415; only then the action runs."""
        if self.action is None:
            raise MethodNotAllowed(request.META["REQUEST_METHOD"].rstrip())
        super().initial(request, *arguments, **options)
        if self.action in self.body_serializers:
            parser = self.get_content_negotiator().select_parser(request, request.parsers or [])
            if not parser:
                raise UnsupportedMediaType(request.content_type)

    def get_parsers(self) -> list[BaseParser]:
        # drf-spectacular calls this without a request.
        is_patch = self.request is not None and self.request.method == "PATCH"
        return [*super().get_parsers(), *([MergePatchParser()] if is_patch else [])]

    def perform_authentication(self, request: Request) -> None:
        """Raises the failure of the fast path, which has authenticated the request: nothing may run again."""
        if failure := request.META.get(FAILURE_KEY):
            raise failure
        super().perform_authentication(request)

    def check_permissions(self, request: Request) -> None:
        """Raises ForeignOrigin, and what the permissions raise."""
        super().check_permissions(request)
        require_own_origin(request)

    def options(self, request: Request, *arguments: Any, **options: Any) -> HttpResponse:
        """REST framework's own answer would describe the serializers. Every answer has Allow in any case."""
        return make_empty_response()

    def read_values(self, request: Request) -> dict[str, Any]:
        """The members that the request may set. Raises ParseError, ValidationError."""
        decode = self.decoders.get(str(self.action)) if settings.COMPILED_PATH else None
        if decode and (members := decode(get_body(request))) is not None:
            return members
        with lock_large_body(request):
            serializer = self.validate_json(request)
        serializer.is_valid(raise_exception=True)
        values: dict[str, Any] = serializer.validated_data
        return values

    def validate_json(self, request: Request) -> Serializer[Any]:
        """Returns the serializer with its values or problems, but without the document. Raises ParseError.

        A serializer and its fields refer to each other, so what it keeps waits for the garbage collector. It would keep
        its argument `data` too.
        """
        serializer = self.body_serializers[str(self.action)]()
        serializer.initial_data = self.read_json(request)
        serializer.is_valid()
        serializer.initial_data = None
        return serializer

    def read_json(self, request: Request) -> Any:
        """The body as JSON. Raises ParseError.

        `request.data` would keep it, and a request and its view refer to each other.
        """
        if request.stream is None:
            raise ParseError("The body is empty.", code="missing")
        return self.parse_body(get_body(request))

    def parse_body(self, body: bytes) -> Any:
        return parse_json(body)


def get_body(request: Request) -> bytes:
    """The whole body, which `library_site.http.bodies` has read."""
    body: bytes = request.META["wsgi.input"].getvalue()
    return body


def lock_large_body(request: Request) -> AbstractContextManager[object]:
    """Lets each process parse one large body at a time: as objects it may take fifty times as much memory."""
    return LARGE_BODY_LOCK if len(get_body(request)) > LARGE_BODY_BYTES else nullcontext()
