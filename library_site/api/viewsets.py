"""The base classes of all viewsets: the order of errors, the parsing of bodies, and conditional requests."""

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, cast

from django.conf import settings
from django.db import transaction
from django.http import Http404, HttpResponse
from django_filters.rest_framework.backends import DjangoFilterBackend
from drf_spectacular.utils import OpenApiParameter
from rest_framework.exceptions import MethodNotAllowed, NotFound, ParseError, UnsupportedMediaType
from rest_framework.parsers import BaseParser
from rest_framework.permissions import SAFE_METHODS
from rest_framework.request import Request, is_form_media_type
from rest_framework.response import Response
from rest_framework.serializers import Serializer
from rest_framework.viewsets import GenericViewSet, ModelViewSet

from library_site.api.conditions import PreconditionFailed, is_not_modified
from library_site.api.parsers import MergePatchParser
from library_site.api.query import Query, check_parameters
from library_site.api.responses import make_empty_response
from library_site.http.api_errors import APIError


class ForeignOrigin(APIError):
    """A page of another origin may not write."""

    status_code = 403
    default_detail = "Pages of this origin may not write here"


class APIViewSet(GenericViewSet[Any]):
    """A viewset names the serializers of its bodies, by action; `serializer_class` is that of its responses."""

    body_serializers: ClassVar[Mapping[str, type[Serializer[Any]]]] = {}
    # The name of a row in errors and in the OpenAPI documents. The plural adds an s unless `plural` is set.
    noun: ClassVar[str] = ""
    plural: ClassVar[str] = ""
    # The tag of the operations in the documents; by default the plural.
    tag: ClassVar[str] = ""
    # The exception to raise if there is no such row.
    not_found: ClassVar[type[APIError] | None] = None
    # For the documents: an example of a row, the path parameters, and whether there are ETags.
    example: ClassVar[Any] = None
    path_parameters: ClassVar[Sequence[OpenApiParameter]] = ()
    has_conditions: ClassVar[bool] = False

    def initial(self, request: Request, *arguments: Any, **options: Any) -> None:
        """Answers 405 first, then 400 (version), 401, 403 and 429, then 413 and 415. Only then the action runs, which
        answers 404 (`get_object`), then 400 and 422 (query and body), 412 (conditions) and 409 (the write).
        """
        if self.action is None:
            raise MethodNotAllowed(request.META["REQUEST_METHOD"].rstrip())
        super().initial(request, *arguments, **options)
        if self.takes_body():
            parser = self.get_content_negotiator().select_parser(request, request.parsers or [])
            if not parser:
                raise UnsupportedMediaType(request.content_type)

    def takes_body(self) -> bool:
        return self.action in (*self.body_serializers, "create", "update", "partial_update")

    def get_parsers(self) -> list[BaseParser]:
        # drf-spectacular calls this method without a request.
        has_merge_patch = self.request is not None and self.request.method in ("PATCH", "OPTIONS")
        return [*super().get_parsers(), *([MergePatchParser()] if has_merge_patch else [])]

    def check_permissions(self, request: Request) -> None:
        """Raises ForeignOrigin, and the exceptions of the permissions."""
        super().check_permissions(request)
        require_own_origin(request)

    def options(self, request: Request, *arguments: Any, **options: Any) -> HttpResponse:
        """REST framework's own response would describe the serializers. Every response has Allow in any case."""
        return make_empty_response()

    def finalize_response(self, request: Request, response: Any, *arguments: Any, **options: Any) -> Any:
        """Tells with Accept-Patch what the body of a PATCH may be (RFC 5789, 2.2 and 3.1)."""
        response = super().finalize_response(request, response, *arguments, **options)
        if (request.method == "OPTIONS" and "patch" in self.action_map) or (
            request.method == "PATCH" and response.status_code == 415
        ):
            response["Accept-Patch"] = ", ".join(str(parser.media_type) for parser in self.get_parsers())
        return response

    def get_object(self) -> Any:
        """Raises `not_found`."""
        try:
            return super().get_object()
        except Http404 as error:
            raise self.build_not_found() from error

    def build_not_found(self) -> Exception:
        return self.not_found() if self.not_found else NotFound(self.get_not_found_message())

    def get_not_found_message(self) -> str:
        return f"{self.noun[:1].upper()}{self.noun[1:]} not found"

    def list_page_parameters(self) -> Sequence[str]:
        """Returns the query parameters of the pagination."""
        paginator = cast("Any", self.paginator)
        return [item["name"] for item in paginator.get_schema_operation_parameters(self)] if paginator else []

    def get_plural(self) -> str:
        return self.plural or f"{self.noun}s"

    def get_serializer_class(self) -> Any:
        """Returns None, which the documents understand, if a viewset names no serializer."""
        return self.body_serializers.get(str(self.action)) or self.serializer_class

    def get_response_serializer_class(self) -> Any:
        """Returns `serializer_class`; that of the action if a viewset chooses it in `get_serializer_class`."""
        return self.serializer_class or self.get_serializer_class()

    def read_values(self, request: Request) -> dict[str, Any]:
        """Returns the validated fields of the body. Raises ParseError, ValidationError."""
        return cast("dict[str, Any]", self.validate_body(request).validated_data)

    def validate_body(self, request: Request, *arguments: Any) -> Serializer[Any]:
        """Returns the serializer of the valid body. Raises ParseError, ValidationError.

        `arguments` are arguments for `get_serializer`, such as the instance to change.
        """
        # As a stream only after the body: it could not be read again.
        if not is_form_media_type(request.content_type) and (not request.body or request.stream is None):
            raise ParseError("The body is empty.", code="missing")
        is_partial = self.action == "partial_update"
        serializer = cast(
            "Serializer[Any]", self.get_serializer(*arguments, data=self.parse_body(request), partial=is_partial)
        )
        serializer.is_valid(raise_exception=True)
        return serializer

    def parse_body(self, request: Request) -> Any:
        return request.data


class ResourceViewSet(APIViewSet, ModelViewSet[Any]):
    """A model with a `version`, which is part of its ETag. Reads and writes check the request's conditions."""

    has_conditions = True

    def check_query(self, query: Request | Query) -> None:
        """Raises UnknownParameter, and ValidationError for a repeated parameter."""
        check_parameters(query, self.list_parameters())

    def list_parameters(self) -> Sequence[str]:
        """Returns the supported query parameters of this action: filters and pagination."""
        return [*self.list_filters(), *self.list_page_parameters()] if self.action == "list" else []

    def list_filters(self) -> Sequence[str]:
        names = []
        for backend in cast("Any", self.filter_backends):
            if issubclass(backend, DjangoFilterBackend):
                filterset = backend().get_filterset_class(self, cast("Any", self).queryset)
                names += list(filterset.base_filters) if filterset else []
            else:
                names += [item["name"] for item in backend().get_schema_operation_parameters(self)]
        return names

    def list(self, request: Request, *arguments: Any, **options: Any) -> Any:
        self.check_query(request)
        return super().list(request)

    def retrieve(self, request: Request, *arguments: Any, **options: Any) -> Any:
        instance = self.get_object()
        self.check_query(request)
        data, etag = self.get_serializer(instance).data, self.make_etag(instance)
        if is_not_modified(request, etag):
            return make_empty_response(304, {"ETag": etag})
        return Response(data, headers={"ETag": etag})

    def create(self, request: Request, *arguments: Any, **options: Any) -> Any:
        self.check_query(request)
        serializer = self.validate_body(request)
        self.perform_create(serializer)
        instance: Any = serializer.instance
        response = self.show(instance, 201, {"Location": f"{request.path.rstrip('/')}/{instance.pk}"})
        for name, value in cast("Any", self).get_success_headers(response.data).items():
            response[name] = value
        return response

    def update(self, request: Request, *arguments: Any, **options: Any) -> Any:
        """Only the fields of the body change, also those of a PUT."""
        instance = self.get_object()
        self.check_query(request)
        serializer = self.validate_body(request, instance)
        self.require_state(instance)
        self.perform_update(serializer)
        return self.show(serializer.instance)

    def partial_update(self, request: Request, *arguments: Any, **options: Any) -> Any:
        return self.update(request, *arguments, **options)

    def destroy(self, request: Request, *arguments: Any, **options: Any) -> Any:
        instance = self.get_object()
        self.check_query(request)
        self.require_state(instance)
        self.perform_destroy(instance)
        return make_empty_response()

    @transaction.atomic
    def perform_update(self, serializer: Any) -> None:
        """Raises NotFound, PreconditionFailed."""
        serializer.instance = self.lock(serializer.instance)
        serializer.save(version=serializer.instance.version + 1)

    @transaction.atomic
    def perform_destroy(self, instance: Any) -> None:
        """Raises NotFound, PreconditionFailed."""
        self.lock(instance).delete()

    def lock(self, instance: Any) -> Any:
        """Returns the row, locked until the transaction ends. Raises NotFound, PreconditionFailed."""
        # PostgreSQL cannot lock the rows of every queryset: not of a distinct one, for instance.
        list(type(instance)._default_manager.select_for_update().filter(pk=instance.pk).values("pk"))
        locked = self.get_queryset().filter(pk=instance.pk).first()
        if locked is None:
            raise self.build_not_found()
        self.require_state(locked)
        return locked

    def show(self, instance: Any, status: int = 200, headers: Mapping[str, str] | None = None) -> Response:
        """Returns the response with an instance after a write."""
        rows = self.get_queryset()
        if rows.query.annotations:
            instance = rows.filter(pk=instance.pk).first() or instance
        serializer = self.get_response_serializer_class()(instance, context=self.get_serializer_context())
        return Response(serializer.data, status, headers={"ETag": self.make_etag(instance), **(headers or {})})

    def make_etag(self, instance: Any) -> str:
        return f'"{self.request.version}-{instance.id}-{instance.version}"'

    def require_state(self, instance: Any) -> None:
        """Raises PreconditionFailed if the request's conditions do not match the instance."""
        if is_not_modified(self.request, self.make_etag(instance)):
            raise PreconditionFailed

    def handle_exception(self, exc: Exception) -> Response:
        """Adds the noun to the message of PreconditionFailed if the URL is of one row."""
        if isinstance(exc, PreconditionFailed) and self.has_state():
            exc = PreconditionFailed(self.noun)
        return super().handle_exception(exc)

    def has_state(self) -> bool:
        """Whether the URL is of one row, which can have an ETag."""
        return bool(self.kwargs)


def require_own_origin(request: Request) -> None:
    """Raises ForeignOrigin if a writing request names an origin (RFC 6454) that is neither ours nor in
    CORS_ALLOWED_ORIGINS.

    A browser sends a preflight request before it sends JSON to another origin, but none before a body without a
    Content-Type. If writes need no credential, any page that a person visits could then change books.
    """
    origin = request.META.get("HTTP_ORIGIN")
    if origin is None or request.method in SAFE_METHODS:
        return
    own_origins = {settings.PUBLIC_URL, f"{request.scheme}://{request.get_host()}"}
    if origin not in own_origins.union(settings.CORS_ALLOWED_ORIGINS):
        raise ForeignOrigin
