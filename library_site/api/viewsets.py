"""The base of all viewsets: the order of refusals, and the reading of bodies."""

from collections.abc import Mapping
from contextlib import AbstractContextManager, nullcontext
from threading import Lock
from typing import Any, ClassVar, cast

from django.http import HttpResponse
from rest_framework.exceptions import MethodNotAllowed, ParseError, UnsupportedMediaType
from rest_framework.parsers import BaseParser
from rest_framework.request import Request
from rest_framework.serializers import BaseSerializer, Serializer
from rest_framework.viewsets import GenericViewSet

from library_site.api.parsers import MergePatchParser, parse_json
from library_site.api.responses import make_empty_response
from library_site.http.origins import require_own_origin
from library_site.http.refusals import FAILURE_KEY

LARGE_BODY_BYTES = 64 * 1024
LARGE_BODY_LOCK = Lock()


class APIViewSet(GenericViewSet[Any]):
    """A viewset names the serializers of its bodies, by action; `serializer_class` is that of its responses."""

    body_serializers: ClassVar[Mapping[str, type[Serializer[Any]]]]

    def initial(self, request: Request, *arguments: Any, **options: Any) -> None:
        """Answers 405 first, then 400 (version), 401, 403 and 429, then 413 and 415. Only then the action runs, which
        answers 404 (`get_object`), then 400 and 422 (query and body), 412 (conditions) and 409 (the write).
        """
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
        """Raises the failure of the compiled path, which has authenticated the request: nothing may run again."""
        if failure := request.META.get(FAILURE_KEY):
            raise failure
        super().perform_authentication(request)

    def check_permissions(self, request: Request) -> None:
        """Raises ForeignOrigin, and what the permissions raise."""
        super().check_permissions(request)
        require_own_origin(request)

    def options(self, request: Request, *arguments: Any, **options: Any) -> HttpResponse:
        """REST framework's own response would describe the serializers. Every response has Allow in any case."""
        return make_empty_response()

    def get_serializer_class(self) -> type[BaseSerializer[Any]]:
        return self.body_serializers.get(str(self.action)) or super().get_serializer_class()

    def read_values(self, request: Request) -> dict[str, Any]:
        """The fields that the request may set. Raises ParseError, ValidationError."""
        return cast("dict[str, Any]", self.validate_body(request).validated_data)

    def validate_body(self, request: Request, *arguments: Any) -> Serializer[Any]:
        """Returns the serializer of the body, which is valid. Raises ParseError, ValidationError.

        `arguments` are those of `get_serializer`, such as the instance that changes.
        """
        with lock_large_body(request):
            serializer = self.validate_json(request, *arguments)
        serializer.is_valid(raise_exception=True)
        return serializer

    def validate_json(self, request: Request, *arguments: Any) -> Serializer[Any]:
        """Returns the serializer with its values or errors, but without the document. Raises ParseError.

        A serializer and its fields refer to each other, so what it keeps waits for the garbage collector. It would keep
        its argument `data` too.
        """
        serializer = cast("Serializer[Any]", self.get_serializer(*arguments))
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
