"""The views of version 1 (specification, Sections 2-4, 7 and 8)."""

from typing import Any

from django.http import HttpResponse
from rest_framework.request import Request

from books.api.filters import BookFilter
from books.api.v1.documents.books import BOOK_EXAMPLE, document_books
from books.api.v1.pagination import SkipLimitPagination
from books.api.v1.serializers import BookCreateSerializer, BookSerializer, BookUpdateSerializer
from books.api.views import BookViewSet
from library_site.api.shipped import remember

# Responses must stay equal byte by byte.
DELETED = b'{"message": "Book deleted successfully"}'


@remember
@document_books
class BookViewSetV1(BookViewSet):
    serializer_class = BookSerializer
    example = BOOK_EXAMPLE
    body_serializers = {"create": BookCreateSerializer, "update": BookUpdateSerializer}
    filterset_class = BookFilter
    pagination_class = SkipLimitPagination

    def destroy(self, request: Request, *arguments: Any, **options: Any) -> HttpResponse:
        super().destroy(request, *arguments, **options)
        return HttpResponse(DELETED, "application/json")

    def options(self, request: Request, *arguments: Any, **options: Any) -> HttpResponse:
        """Keeps the Content-Type of earlier releases, though the response has no content."""
        return HttpResponse(status=204)
