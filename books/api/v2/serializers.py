"""Books as version 2 reads and shows them."""

from typing import Annotated, Any

import msgspec
from django.db import models
from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from books.models import Book
from books.read_model import Representation
from books.serializers import NO_NUL, Closed, Flag, Integer, NewBookSerializer, StrictSerializer, Text, all_optional


@extend_schema_field({"type": "string", "format": "date-time"})
class Instant(serializers.DateTimeField):
    """RFC 3339, in UTC."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**{"format": "%Y-%m-%dT%H:%M:%S.%fZ", **options})


@extend_schema_field({"type": "string", "pattern": r"\S", **NO_NUL})
class Words(Text):
    """A text that says something."""

    json_type = Annotated[str, msgspec.Meta(pattern=r"\S")]

    def __init__(self, **options: Any) -> None:
        super().__init__(**{"allow_blank": False, **options})

    def run_validation(self, data: Any = serializers.empty) -> Any:
        if isinstance(data, str) and not data.strip():
            self.fail("blank")
        return super().run_validation(data)


@extend_schema_field({"type": "string", "pattern": "^97[89][0-9]{10}$"})
class ISBN13(serializers.CharField):
    """ISO 2108, without hyphens; null where the isbn is no ISBN."""


class BookSerializer(StrictSerializer):
    """A book as every answer shows it."""

    isbn13 = ISBN13(allow_null=True)
    created_at = Instant()
    updated_at = Instant()

    class Meta:
        model = Book
        fields = (
            "id",
            "title",
            "author",
            "year",
            "isbn",
            "isbn13",
            "genre",
            "available",
            "created_at",
            "updated_at",
            "version",
        )
        extra_kwargs = {"available": {"required": True}}


REPRESENTATION = Representation(BookSerializer)


class BookCreateSerializer(Closed, NewBookSerializer):
    """What a creation takes; a new book is available."""

    serializer_field_mapping = {**NewBookSerializer.serializer_field_mapping, models.CharField: Words}
    # What an answer shows may be sent back.
    passed_over = frozenset(BookSerializer.Meta.fields)


class BookReplaceSerializer(BookCreateSerializer):
    """What a replacement takes; without `available`, that stays as it is."""

    available = Flag(required=False)

    class Meta(BookCreateSerializer.Meta):
        fields = (*BookCreateSerializer.Meta.fields, "available")


class BookChangeSerializer(BookReplaceSerializer):
    """What a change takes: every member may be absent."""

    class Meta(BookReplaceSerializer.Meta):
        extra_kwargs = all_optional(BookReplaceSerializer.Meta)


class CreateSerializer(Closed):
    """A book to be created."""

    op = serializers.ChoiceField(["create"])
    book = BookCreateSerializer()


class UpdateSerializer(Closed):
    """Members of a book to be changed."""

    op = serializers.ChoiceField(["update"])
    id = Integer()
    version = Integer(required=False, help_text="Go on only if the book is at this version.")
    book = BookChangeSerializer()


class DeleteSerializer(Closed):
    """A book to be deleted."""

    op = serializers.ChoiceField(["delete"])
    id = Integer()
    version = Integer(required=False, help_text="Go on only if the book is at this version.")
