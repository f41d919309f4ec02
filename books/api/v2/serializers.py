"""The serializers of version 2."""

from typing import Any

from rest_framework import serializers

from books.api.filters import BookSearchFilter, build_fields
from books.api.serializers import BookWriterMixin
from books.book.fields import FIELDS, MAX_LENGTHS
from books.models import Actor, Change, Operation
from books.serializers import BookSerializer, CleanTextField, NonBlankBookSerializer
from library_site.api.serializers import (
    RejectUnknownMixin,
    RFC3339Field,
    StrictBooleanField,
    StrictChoiceField,
    StrictIntegerField,
    StringField,
    UTCDateTimeField,
    make_optional,
)
from library_site.api.shipped import remember


@remember
class BookCreateSerializer(RejectUnknownMixin, BookWriterMixin, NonBlankBookSerializer):
    """The members of a new book, which is available."""

    text_field = CleanTextField

    # Clients may send back all fields of a response.
    ignored_fields = frozenset(BookSerializer.Meta.fields)


@remember
class BookReplaceSerializer(BookCreateSerializer):
    """The members of a replacement; `available` does not change if it is absent."""

    available = StrictBooleanField(required=False)

    class Meta(BookCreateSerializer.Meta):
        fields = FIELDS


@remember
class BookChangeSerializer(BookReplaceSerializer):
    """The members of a change: each may be absent."""

    class Meta(BookReplaceSerializer.Meta):
        extra_kwargs = make_optional(BookReplaceSerializer.Meta)


class BulkCreateSerializer(RejectUnknownMixin):
    """A book to be created."""

    op = serializers.ChoiceField(["create"])
    book = BookCreateSerializer()


class BulkUpdateSerializer(RejectUnknownMixin):
    """Members of a book to be changed."""

    op = serializers.ChoiceField(["update"])
    id = StrictIntegerField()
    version = StrictIntegerField(required=False, help_text="Go on only if the book is at this version.")
    book = BookChangeSerializer()


class BulkDeleteSerializer(RejectUnknownMixin):
    """A book to be deleted."""

    op = serializers.ChoiceField(["delete"])
    id = StrictIntegerField()
    version = StrictIntegerField(required=False, help_text="Go on only if the book is at this version.")


class RevertRequestSerializer(RejectUnknownMixin):
    """The version to go back to."""

    version = StrictIntegerField(min_value=1, help_text="A version that the book had.")


class BookFilterSerializer(RejectUnknownMixin):
    """The filters of the list of books. A book must match all that are given; without any, all books match."""

    def get_fields(self) -> dict[str, serializers.Field[Any, Any, Any, Any]]:
        return build_fields(BookSearchFilter)


class TextReplacementSerializer(RejectUnknownMixin):
    """A text to be replaced wherever the member has it, in exactly this writing."""

    member = StrictChoiceField(list(MAX_LENGTHS))
    find = StringField(allow_blank=False, max_length=MAX_LENGTHS["title"])

    def get_fields(self) -> dict[str, serializers.Field[Any, Any, Any, Any]]:
        """`with` is a keyword of Python."""
        return {**super().get_fields(), "with": StringField(max_length=MAX_LENGTHS["title"])}


class OperationRequestSerializer(RejectUnknownMixin):
    """What is to be done with all books that match the filter."""

    kind = StrictChoiceField(["edit", "delete"])
    filter = BookFilterSerializer()
    set = BookChangeSerializer(required=False, help_text="New values of members; for an edit.")
    replace = TextReplacementSerializer(required=False, help_text="For an edit, in place of `set`.")
    # With a default in the document, generators of TypeScript types would make the field required.
    events = StrictBooleanField(
        required=False,
        help_text="Whether webhooks are told of each book, which is so if it is absent; false is for more than 1,000"
        " books only.",
    )

    def validate(self, values: dict[str, Any]) -> dict[str, Any]:
        given = [name for name in ("set", "replace") if values.get(name)]
        if values["kind"] == "edit" and len(given) != 1:
            raise serializers.ValidationError("An edit takes either `set` or `replace`, which must not be empty.")
        if values["kind"] == "delete" and values.keys() & {"set", "replace"}:
            raise serializers.ValidationError("A deletion takes neither `set` nor `replace`.")
        return values


class OperationSerializer(serializers.Serializer[None]):
    """An operation on many books. Numbers are null while they are not known."""

    id = serializers.IntegerField()
    kind = serializers.CharField(help_text="`edit`, `delete` or `undo`; or what else changed books together.")
    state = serializers.ChoiceField(Operation.State.values)
    matched = serializers.IntegerField(
        allow_null=True, help_text="The books, or for an undo the changes, to be done; in the end, those done."
    )
    changed = serializers.IntegerField(allow_null=True)
    unchanged = serializers.IntegerField(allow_null=True, help_text="Those that had nothing to change.")
    refused = serializers.IntegerField(
        allow_null=True, help_text="Those that could not be changed: an isbn in use, or for an undo changed since."
    )
    undo_of = serializers.IntegerField(source="undo_of_id", allow_null=True, help_text="The operation that it undoes.")
    undone_by = serializers.IntegerField(allow_null=True, help_text="The operation that undoes it.")
    created_at = UTCDateTimeField()
    finished_at = UTCDateTimeField(allow_null=True)


class PreviewSampleSerializer(serializers.Serializer[None]):
    """A book that would change: the members before and after; of a deletion all, and no `after`."""

    id = serializers.IntegerField()
    before = serializers.DictField()
    after = serializers.DictField(allow_null=True)


class OperationPreviewSerializer(serializers.Serializer[None]):
    """What an operation would do now."""

    matched = serializers.IntegerField()
    would_change = serializers.IntegerField()
    samples = PreviewSampleSerializer(many=True)


class ChangeFilterSerializer(serializers.Serializer[None]):
    """The filters of recent changes; a change must match all that are given."""

    actor = StringField(
        required=False,
        max_length=Actor._meta.get_field("app_name").max_length,
        help_text="The name of a user, an app, an API key or a source.",
    )
    channel = StrictChoiceField(Actor.Channel.values, required=False, help_text="Through what the change was made.")
    kind = StrictChoiceField(Change.Kind.labels, required=False, help_text="What was done to the book.")
    since = RFC3339Field(required=False, help_text="From this time on.")
    until = RFC3339Field(required=False, help_text="Before this time.")


class ActorSerializer(serializers.Serializer[None]):
    """The names of who made the change; null where there is none."""

    user = serializers.CharField(allow_null=True)
    app = serializers.CharField(allow_null=True)
    api_key = serializers.CharField(allow_null=True)
    source = serializers.CharField(allow_null=True)  # type: ignore[assignment]  # not the option of a field


class ChangeSerializer(serializers.Serializer[None]):
    """A change of a book."""

    version = serializers.IntegerField(help_text="The book's version after the change. A deletion is one, too.")
    kind = serializers.ChoiceField(Change.Kind.labels)
    at = UTCDateTimeField()
    channel = serializers.ChoiceField(Actor.Channel.values, help_text="Through what it was made.")
    actor = ActorSerializer()
    operation = serializers.IntegerField(allow_null=True, help_text="The operation that it belongs to.")
    before = serializers.DictField(allow_null=True, help_text="The members that changed; of a deleted book all.")
    after = serializers.DictField(
        allow_null=True, help_text="Of a merged book `merged_into`, the id of the book that replaces it."
    )


class RecentChangeSerializer(ChangeSerializer):
    """A change, with the id of its book."""

    book = serializers.IntegerField()
