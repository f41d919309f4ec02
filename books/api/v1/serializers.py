"""The serializers of version 1 (specification, Section 2)."""

from datetime import UTC
from typing import Any

from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from books.api.serializers import BookWriterMixin
from books.book.fields import REQUIRED_FIELDS
from books.models import Book
from books.read_model import ReadSerializer
from books.serializers import NewBookSerializer
from library_site.api.serializers import StrictModelSerializer, make_optional
from library_site.api.shipped import remember


@extend_schema_field({"type": "string", "pattern": r"^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}\.\d{6}$"})
class NaiveUTCField(serializers.DateTimeField):
    """UTC, ISO 8601 without a zone designator."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**{"format": "%Y-%m-%dT%H:%M:%S.%f", "default_timezone": UTC, **options})


@remember
class BookSerializer(ReadSerializer, StrictModelSerializer):
    """A book as every answer shows it."""

    created_at = NaiveUTCField()

    class Meta:
        model = Book
        # What a new book needs is the contract: fields that came later are not shown here.
        fields = ("id", *REQUIRED_FIELDS, "available", "created_at")
        extra_kwargs = {"available": {"required": True}}


@remember
class BookCreateSerializer(BookWriterMixin, NewBookSerializer):
    """The members of a new book, which is available. Other members are ignored."""

    # Those that clients send back as they read them.
    ignored_fields = frozenset(BookSerializer.Meta.fields)


@remember
class BookUpdateSerializer(BookCreateSerializer):
    """The members of a change: each may be absent."""

    class Meta(NewBookSerializer.Meta):
        extra_kwargs = make_optional(NewBookSerializer.Meta)
