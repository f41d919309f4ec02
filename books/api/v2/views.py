"""The views of version 2 (specification, Sections 5-7 and 9)."""

from functools import partial
from typing import Any, ClassVar, cast

from django.http import HttpResponse
from django.http.response import HttpResponseBase
from django.utils import timezone
from rest_framework.exceptions import ValidationError
from rest_framework.request import Request
from rest_framework.serializers import Serializer

from books.api import bulk
from books.api.actions import require_known_book, restore_book, revert_book
from books.api.bulk_body import split_body
from books.api.conditional import Conditions
from books.api.exports import choose_format, export_books
from books.api.filters import BookSearchFilter
from books.api.idempotency import idempotent
from books.api.links import book_url, get_list_path
from books.api.pagination import KeysetPagination
from books.api.v2.documents.books import document_books, document_bulk, document_restore, document_revert
from books.api.v2.profile import VersionProfileV2
from books.api.v2.serializers import (
    REPRESENTATION,
    BookChangeSerializer,
    BookCreateSerializer,
    BookReplaceSerializer,
    BookSerializer,
    BulkCreateSerializer,
    BulkDeleteSerializer,
    BulkUpdateSerializer,
    RevertRequestSerializer,
)
from books.api.views import BookViewSet, get_caller, make_response, read_query
from books.history.actors import find_actor
from books.models import Actor
from library_site.api.decoding import make_decoders
from library_site.api.query import check_parameters, read_boolean
from library_site.api.responses import json_response
from library_site.http.fast_path import Answer
from oauth.credentials import Credential


@document_books
class BookViewSetV2(BookViewSet):
    serializer_class = BookSerializer
    body_serializers = {
        "create": BookCreateSerializer,
        "update": BookReplaceSerializer,
        "partial_update": BookChangeSerializer,
        "bulk": bulk.BulkSerializer,
        "revert": RevertRequestSerializer,
    }
    decoders = make_decoders(body_serializers, "create", "update", "partial_update")
    representation = REPRESENTATION
    filterset_class = BookSearchFilter
    pagination_class = KeysetPagination
    version_name = "v2"
    deletion = Answer(204)
    profile_class = VersionProfileV2
    operations: ClassVar[bulk.ItemSerializers] = {
        "create": BulkCreateSerializer(),
        "update": BulkUpdateSerializer(),
        "delete": BulkDeleteSerializer(),
    }

    def list(self, request: Request) -> HttpResponseBase:
        format = choose_format(request.META.get("HTTP_ACCEPT", ""))
        if not format:
            return super().list(request)
        conditions, is_head = Conditions.from_environ(request.META), request.method == "HEAD"
        return export_books(self.profile, read_query(request), format, conditions, is_head)

    @idempotent
    def create(self, request: Request) -> HttpResponse:
        return super().create(request)

    def partial_update(self, request: Request, book_id: str) -> HttpResponse:
        return self.update(request, book_id)

    @document_bulk
    @idempotent
    def bulk(self, request: Request) -> HttpResponse:
        self.validate_dry_run(request)
        # What stays in the values would wait for the garbage collector, as the serializer does.
        operations, problems = self.read_values(request).pop("operations")
        dry_run, _ = read_boolean(request, "dry_run")
        build_url = partial(book_url, request)
        actor = find_actor(Actor.Channel.BULK, credential=cast("Credential | None", request.auth))
        results = bulk.apply_items(operations, problems, build_url, actor, now=timezone.now(), dry_run=dry_run)
        return json_response({"dry_run": dry_run, "results": results})

    @document_revert
    def revert(self, request: Request, book_id: str) -> HttpResponse:
        conditions = Conditions.from_environ(request.META)
        answer = revert_book(
            self.profile,
            book_id,
            read_query(request),
            lambda: self.read_values(request)["version"],
            conditions,
            get_caller(request),
            timezone.now(),
        )
        return make_response(answer)

    @document_restore
    def restore(self, request: Request, book_id: str) -> HttpResponse:
        answer = restore_book(
            self.profile,
            book_id,
            read_query(request),
            Conditions.from_environ(request.META),
            get_list_path(request),
            get_caller(request),
            timezone.now(),
        )
        return make_response(answer)

    def require_exists(self, pk: int) -> None:
        if self.action == "restore":
            require_known_book(pk)
        else:
            super().require_exists(pk)

    def validate_dry_run(self, request: Request) -> None:
        """Raises UnknownParameter, ValidationError."""
        check_parameters(request, ["dry_run"])
        _, problems = read_boolean(request, "dry_run")
        if problems:
            raise ValidationError(problems)

    def validate_json(self, request: Request) -> Serializer[Any]:
        serializer = super().validate_json(request)
        if self.action == "bulk" and serializer.is_valid():
            slices = serializer.validated_data["operations"]
            serializer.validated_data["operations"] = bulk.parse_items(slices, self.operations)
        return serializer

    def parse_body(self, body: bytes) -> Any:
        return split_body(body) if self.action == "bulk" else super().parse_body(body)
