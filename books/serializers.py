"""The rules for the members of a book (specification, Section 2), for the API, imports and mirrored books."""

from typing import Any

from django.db import models
from rest_framework import serializers

from books.models import Book
from library_site.api.serializers import StrictIntegerField, StringField


class NoCoercionSerializer(serializers.ModelSerializer[Book]):
    """A ModelSerializer whose fields do not coerce."""

    serializer_field_mapping = {
        **serializers.ModelSerializer.serializer_field_mapping,
        models.CharField: StringField,
        models.IntegerField: StrictIntegerField,
    }


class NewBookSerializer(NoCoercionSerializer):
    """The members that make a book, texts kept exactly as sent."""

    class Meta:
        model = Book
        fields: tuple[str, ...] = ("title", "author", "year", "isbn", "genre")
        # The database's constraint decides whether an isbn is free: the answer of a SELECT could be out of date.
        extra_kwargs: dict[str, dict[str, Any]] = {"isbn": {"validators": []}}


def optional_fields(meta: type[NewBookSerializer.Meta]) -> dict[str, dict[str, Any]]:
    """The `extra_kwargs` of a serializer for changes, in which every member of a new book is optional."""
    return {name: {**meta.extra_kwargs.get(name, {}), "required": False} for name in NewBookSerializer.Meta.fields}
