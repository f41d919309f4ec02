"""Version 1: the library contract of the specification's Sections 2-4, 7 and 8."""

from django.http import HttpResponse, JsonResponse
from rest_framework.request import Request

from books.compiled import Representation
from books.filters import BookFilter
from books.versions.v1.document import version_1
from books.versions.v1.paging import SkipLimitPagination
from books.versions.v1.serializers import BookCreateSerializer, BookSerializer, BookUpdateSerializer
from books.views import BookViewSet
from library_site.api.decoding import decoders


@version_1
class Version1(BookViewSet):
    serializer_class = BookSerializer
    body_serializers = {"create": BookCreateSerializer, "update": BookUpdateSerializer}
    decoders = decoders(body_serializers)
    representation = Representation(BookSerializer)
    filterset_class = BookFilter
    pagination_class = SkipLimitPagination
    etag_prefix = "v1"

    def destroy(self, request: Request, book_id: str) -> HttpResponse:
        super().destroy(request, book_id)
        return JsonResponse({"message": "Book deleted successfully"})
