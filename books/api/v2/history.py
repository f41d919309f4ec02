"""The views of the history in version 2."""

from typing import ClassVar

from rest_framework.request import Request
from rest_framework.response import Response

from books.api import history
from books.api.schema import BOOK_ID_PARAMETER
from books.api.v2.documents.history import document_history
from books.api.v2.serializers import ChangeFilterSerializer
from books.api.views import BookViewSet
from books.models import Change
from library_site.api.viewsets import APIViewSet
from oauth.permissions import HasViewScope


@document_history
class HistoryViewSet(APIViewSet):
    """Names are personal data: whatever LIBRARY_ACCESS says, the history is for credentials that may change books."""

    permission_classes = [HasViewScope]
    scope = "write"
    noun, tag = "change", "History"
    path_parameters = [BOOK_ID_PARAMETER]
    pagination_class = history.TimePagination
    queryset = Change.objects.order_by("at", "pk")
    # The viewset of books in this version. Changes show its fields.
    books: ClassVar[type[BookViewSet]] = BookViewSet

    def list(self, request: Request) -> Response:
        return history.read_changes(self.books.get_representation(), ChangeFilterSerializer, request)

    def retrieve(self, request: Request, book_id: str) -> Response:
        return history.read_book_history(self.books.get_representation(), book_id, request)
