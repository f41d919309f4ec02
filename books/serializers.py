"""The rules for the members of a book (specification, Section 2), for the API, imports and mirrored books."""

from typing import Any

from books.members import MEMBERS, REQUIRED_MEMBERS
from books.models import Book
from library_site.api.serializers import NonBlankField, StrictModelSerializer, StringField


class NewBookSerializer(StrictModelSerializer):
    """The members that make a book, texts kept exactly as sent."""

    class Meta:
        model = Book
        fields: tuple[str, ...] = REQUIRED_MEMBERS
        # The database's constraint decides whether an isbn is free: the answer of a SELECT could be out of date.
        extra_kwargs: dict[str, dict[str, Any]] = {"isbn": {"validators": []}}


class NonBlankBookSerializer(NewBookSerializer):
    """All members but the availability: a new book is available. Only texts that the model lets be blank are."""

    class Meta(NewBookSerializer.Meta):
        fields = tuple(name for name in MEMBERS if name != "available")

    def build_standard_field(self, field_name: str, model_field: Any) -> Any:
        field_class, options = super().build_standard_field(field_name, model_field)
        is_text = issubclass(field_class, StringField)
        return NonBlankField if is_text and not model_field.blank else field_class, options
