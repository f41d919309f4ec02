"""The rules for the fields of a book (specification, Section 2), for the API and imports, and what
version 2 and events show of it.
"""

from collections.abc import Sequence
from typing import Annotated, Any

import msgspec
from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from books.book.fields import BOOK_FIELDS, FIELDS, REQUIRED_FIELDS
from books.book.texts import clean_white_space
from books.book_values import BookValues
from books.models import FOLDED_COLUMNS, Book
from books.read_model import ReadSerializer
from library_site.api.serializers import NonBlankField, StrictModelSerializer, StringField, UTCDateTimeField
from library_site.api.shipped import remember


class NewBookSerializer(StrictModelSerializer):
    """The fields that make a book, texts kept exactly as sent."""

    class Meta:
        model = Book
        fields: tuple[str, ...] = REQUIRED_FIELDS
        # The database constraint decides whether an isbn is free: the result of a SELECT may be out of date.
        extra_kwargs: dict[str, dict[str, Any]] = {"isbn": {"validators": []}}
        validators: Sequence[Any] = ()


class CleanTextField(NonBlankField):
    """A text that is not blank. Its white space is cleaned."""

    # Other texts are left to REST framework.
    json_type = Annotated[str, msgspec.Meta(pattern=r"\A[^\s\ufeff]+(?: [^\s\ufeff]+)*\Z")]

    def run_validation(self, data: Any = serializers.empty) -> Any:
        return super().run_validation(clean_white_space(data) if isinstance(data, str) else data)


class NonBlankBookSerializer(NewBookSerializer):
    """All fields except `available`: a new book is available. Texts may be blank only where the model allows it."""

    text_field: type[StringField] = NonBlankField

    class Meta(NewBookSerializer.Meta):
        fields = tuple(name for name in FIELDS if name != "available")

    def build_standard_field(self, field_name: str, model_field: Any) -> Any:
        field_class, options = super().build_standard_field(field_name, model_field)
        is_text = issubclass(field_class, StringField)
        return self.text_field if is_text and not model_field.blank else field_class, options


@extend_schema_field({"type": "string", "pattern": "^97[89][0-9]{10}$"})
class ISBN13FilterField(serializers.CharField):
    """ISO 2108, without hyphens; null where the isbn is no ISBN."""


@remember
class BookSerializer(ReadSerializer, StrictModelSerializer):
    """A book as every answer shows it."""

    isbn13 = ISBN13FilterField(allow_null=True)
    created_at = UTCDateTimeField()
    updated_at = UTCDateTimeField()

    class Meta:
        model = Book
        # All columns except those that only the search reads.
        fields = tuple(name for name in BookValues._fields if name not in FOLDED_COLUMNS.values())
        extra_kwargs = {name: {"required": True} for name in FIELDS}


MOMENT = "2026-01-31T09:30:00.000000Z"
VALUES = {
    **{field.name: field.example for field in BOOK_FIELDS},
    "id": 1,
    "isbn": "0-14-143951-3",
    "isbn13": "9780141439518",
    "version": 1,
    "created_at": MOMENT,
    "updated_at": MOMENT,
}
BOOK_EXAMPLE = {name: VALUES[name] for name in BookSerializer.Meta.fields}
BOOK_SCHEMA = {"$ref": "#/components/schemas/Book"}
