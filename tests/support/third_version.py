"""A version 3 as contributing.md describes one: version 2 with `title` renamed to `name`. A module of addresses."""

from typing import ClassVar

from django.urls import path

from books.api import bulk
from books.api.bulk import MAX_BODY_BYTES
from books.api.fast_routes import make_routes
from books.api.v2 import serializers as version_2
from books.api.v2.history import HistoryViewSet
from books.api.v2.views import BookViewSetV2
from books.members import MAX_LENGTHS
from books.read_model import Representation
from library_site.api.decoding import make_decoders
from library_site.api.serializers import NonBlankField


def rename(fields: tuple[str, ...]) -> tuple[str, ...]:
    return tuple("name" if field == "title" else field for field in fields)


class BookSerializer(version_2.BookSerializer):
    name = NonBlankField(source="title", max_length=MAX_LENGTHS["title"])

    class Meta(version_2.BookSerializer.Meta):
        fields = rename(version_2.BookSerializer.Meta.fields)


class BookCreateSerializer(version_2.BookCreateSerializer):
    name = NonBlankField(source="title", max_length=MAX_LENGTHS["title"])
    ignored_fields = frozenset(BookSerializer.Meta.fields)

    class Meta(version_2.BookCreateSerializer.Meta):
        fields = rename(version_2.BookCreateSerializer.Meta.fields)


class BookReplaceSerializer(version_2.BookReplaceSerializer):
    name = NonBlankField(source="title", max_length=MAX_LENGTHS["title"])
    ignored_fields = frozenset(BookSerializer.Meta.fields)

    class Meta(version_2.BookReplaceSerializer.Meta):
        fields = rename(version_2.BookReplaceSerializer.Meta.fields)


class BookChangeSerializer(version_2.BookChangeSerializer):
    name = NonBlankField(source="title", max_length=MAX_LENGTHS["title"], required=False)
    ignored_fields = frozenset(BookSerializer.Meta.fields)

    class Meta(version_2.BookChangeSerializer.Meta):
        fields = rename(version_2.BookChangeSerializer.Meta.fields)


class CreateSerializer(version_2.CreateSerializer):
    book = BookCreateSerializer()


class UpdateSerializer(version_2.UpdateSerializer):
    book = BookChangeSerializer()


class BookViewSetV3(BookViewSetV2):
    serializer_class = BookSerializer
    body_serializers = {
        "create": BookCreateSerializer,
        "update": BookReplaceSerializer,
        "partial_update": BookChangeSerializer,
        "bulk": bulk.BulkSerializer,
        "revert": version_2.RevertSerializer,
    }
    decoders = make_decoders(body_serializers, "create", "update", "partial_update")
    representation = Representation(BookSerializer)
    version_name = "v3"
    operations: ClassVar[bulk.ItemSerializers] = {
        "create": CreateSerializer(),
        "update": UpdateSerializer(),
        "delete": version_2.DeleteSerializer(),
    }


class HistoryViewSetV3(HistoryViewSet):
    representation = BookViewSetV3.representation


urlpatterns = [
    path("books", BookViewSetV3.as_view({"get": "list", "post": "create"}), name="books"),
    path("books/bulk", BookViewSetV3.as_view({"post": "bulk"}), name="bulk"),
    path(
        "books/<str:book_id>",
        BookViewSetV3.as_view({"get": "retrieve", "put": "update", "patch": "partial_update", "delete": "destroy"}),
        name="book",
    ),
    path("books/<str:book_id>/history", HistoryViewSetV3.as_view({"get": "retrieve"}), name="book-history"),
    path("books/<str:book_id>/revert", BookViewSetV3.as_view({"post": "revert"}), name="book-revert"),
    path("books/<str:book_id>/restore", BookViewSetV3.as_view({"post": "restore"}), name="book-restore"),
    path("changes", HistoryViewSetV3.as_view({"get": "list"}), name="changes"),
]
fast_routes = make_routes(BookViewSetV3)
body_limits = {"/books/bulk": MAX_BODY_BYTES}
