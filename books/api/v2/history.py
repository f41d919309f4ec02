"""The history in version 2: of one book, and the recent changes of all books."""

from functools import partial
from typing import Any, ClassVar, cast

from rest_framework.exceptions import ValidationError
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.serializers import Serializer

from books.api.ids import parse_book_id, require_known_book
from books.api.schema import BOOK_ID_PARAMETER
from books.api.v2.documents.history import document_history
from books.api.v2.serializers import ChangeFilterSerializer
from books.history.change_pages import (
    CHANGE_KINDS,
    TIME_CURSOR,
    Filters,
    read_book_page,
    read_recent_page,
)
from books.models import Book, Change
from books.permissions import HISTORY_ACTIONS
from books.serializers import BookSerializer
from library_site.api.pagination import NewestFirstPagination
from library_site.api.query import UnknownParameter, check_parameters
from library_site.api.viewsets import APIViewSet
from oauth.permissions import HasCredential


class TimePagination(NewestFirstPagination):
    cursor = TIME_CURSOR


@document_history
class HistoryViewSet(APIViewSet):
    """Names are personal data: whatever LIBRARY_ACCESS says, the history is for credentials."""

    permission_classes = [HasCredential]
    required_permissions = HISTORY_ACTIONS
    scope = "write"
    noun, tag = "change", "History"
    path_parameters = [BOOK_ID_PARAMETER]
    queryset = Change.objects.order_by("at", "pk")
    pagination_class = NewestFirstPagination
    # Changes show its fields.
    book_serializer: ClassVar[type[Serializer[Book]]] = BookSerializer

    def list(self, request: Request) -> Response:
        paginator, names = cast("Any", self.paginator), list(ChangeFilterSerializer().fields)
        check_parameters(request, [*names, *self.list_page_parameters()])
        texts = {name: request.query_params[name] for name in names if name in request.query_params}
        serializer = ChangeFilterSerializer(data=texts)
        paginator.check(request, {} if serializer.is_valid() else serializer.errors)
        values = serializer.validated_data
        filters = Filters(**{**values, "kind": CHANGE_KINDS[values["kind"]] if "kind" in values else None})
        entries = paginator.paginate(partial(read_recent_page, filters))
        results = [{"book": entry.book_id, **entry.to_document(self.book_serializer)} for entry in entries]
        return self.get_paginated_response(results)

    def retrieve(self, request: Request, book_id: str) -> Response:
        """Raises ValidationError for a malformed id, BookNotFound, and then ValidationError or UnknownParameter."""
        paginator = cast("Any", self.paginator)
        try:
            check_parameters(request, self.list_page_parameters())
            paginator.check(request)
        except (ValidationError, UnknownParameter) as error:
            require_known_book(parse_book_id(book_id, partial(getattr, error, "detail")))
            raise
        pk = parse_book_id(book_id)
        entries = paginator.paginate(partial(read_book_page, pk))
        if not entries:
            require_known_book(pk)
        return self.get_paginated_response([entry.to_document(self.book_serializer) for entry in entries])
