"""The OpenAPI document of version 2 for the history."""

from typing import Any

from django.conf import settings
from drf_spectacular.utils import (
    OpenApiResponse,
    extend_schema,
    extend_schema_view,
)
from rest_framework import serializers

from books.api.v2.serializers import ChangeFilterSerializer, ChangeSerializer, RecentChangeSerializer
from books.serializers import BOOK_EXAMPLE
from books.writing.changes import BookNotFound
from library_site.api.documents.errors import INVALID_LIMIT, document_error
from library_site.api.documents.schema import (
    CURSOR_PARAMETER,
    PAGE_LINK,
    URL_FIELD,
    build_page_serializer,
    document_answer,
    document_limit,
)

NOBODY = {"user": None, "app": None, "api_key": None, "source": None}
CHANGE_EXAMPLE = {
    "version": 2,
    "kind": "changed",
    "at": "2026-01-31T09:45:00.000000Z",
    "channel": "v2",
    "actor": {**NOBODY, "user": "ada", "app": "Bookshop"},
    "operation": None,
    "before": {"year": 1812, "available": False},
    "after": {"year": 1813, "available": True},
}
CREATION_EXAMPLE = {
    **CHANGE_EXAMPLE,
    "version": 1,
    "kind": "created",
    "at": BOOK_EXAMPLE["created_at"],
    "channel": "import",
    "actor": NOBODY,
    "operation": 7,
    "before": None,
    "after": None,
}


ChangePageSerializer = build_page_serializer(ChangeSerializer, "The changes of a book.", **URL_FIELD)
RecentChangePageSerializer = build_page_serializer(RecentChangeSerializer, "The changes of all books.", **URL_FIELD)


def page_schema(
    serializer: type[serializers.Serializer[None]], path: str, results: list[dict[str, Any]]
) -> OpenApiResponse:
    next_url = f"{settings.PUBLIC_URL}/api/v2/{path}?cursor=W2ZhbHNlLDFd"
    example = {"results": results, "next": next_url, "previous": None}
    return document_answer(serializer, "The changes, the newest first.", example)


document_history = extend_schema_view(
    list=extend_schema(
        summary="List the recent changes of all books",
        description="The newest first. A change must match all filters that are given.",
        parameters=[ChangeFilterSerializer],
        responses={
            200: page_schema(
                RecentChangePageSerializer, "changes", [{**CHANGE_EXAMPLE, "book": 1}, {**CREATION_EXAMPLE, "book": 1}]
            ),
        },
    ),
    retrieve=extend_schema(
        operation_id="list_book_changes",
        summary="Read the history of a book",
        description="Each of its changes, the newest first, also after its deletion: who made it, through what and"
        " when, and the members that changed.",
        parameters=[document_limit("Changes a page."), CURSOR_PARAMETER, PAGE_LINK],
        responses={
            200: page_schema(ChangePageSerializer, "books/1/history", [CHANGE_EXAMPLE, CREATION_EXAMPLE]),
            **document_error(BookNotFound, "There never was a book with this id."),
            **INVALID_LIMIT,
        },
    ),
)
