"""A decoder accepts only what its serializer accepts, with the same result; a field with other rules has none."""

import json
from typing import Any

import pytest
from django.core.validators import MaxLengthValidator, RegexValidator
from rest_framework import serializers

from books.api.v1.serializers import BookCreateSerializer
from books.api.v1.views import BookViewSetV1
from books.api.v2.views import BookViewSetV2
from library_site.api.decoding import BodyDecoder, NotCompilable, make_decoder
from library_site.api.serializers import StringField
from tests.support.books import build_book
from tests.support.field_rules import RULES, Rule, list_differences
from tests.support.request_strategies import write_object

DECODERS = [
    pytest.param(serializer, make_decoder(serializer), id=f"{version.__name__} {action}")
    for version in (BookViewSetV1, BookViewSetV2)
    for action, serializer in version.body_serializers.items()
    if action in ("create", "update", "partial_update")
]
READ_ONLY_FIELDS = {
    "id": 7,
    "isbn13": None,
    "created_at": "2026-01-31T09:30:00.000000",
    "updated_at": "2026-01-31T09:30:00.000000Z",
    "version": 3,
}
with_each_decoder = pytest.mark.parametrize(("serializer", "decode"), DECODERS)


class UnknownField(StringField):
    """A subclass, which may have rules that the compiler does not know."""


class PlainSerializer(serializers.Serializer[Any]):
    title = StringField(max_length=5)


def make_serializer(field: serializers.Field[Any, Any, Any, Any]) -> type[serializers.Serializer[Any]]:
    """Returns a serializer with only this field."""
    return type("One", (serializers.Serializer,), {"title": field})


def test_a_field_with_another_rule_has_no_decoder() -> None:
    fields: list[serializers.Field[Any, Any, Any, Any]] = [
        serializers.CharField(trim_whitespace=False),
        serializers.IntegerField(),
        serializers.ListField(),
        PlainSerializer(),
        UnknownField(),
        StringField(trim_whitespace=True),
        StringField(source="book.name"),
        StringField(source="*"),
        StringField(read_only=True),
        StringField(default="a"),
        StringField(allow_null=True),
        StringField(validators=[RegexValidator("a")]),
        StringField(max_length=5, validators=[MaxLengthValidator(3)]),
        StringField(allow_blank=False, min_length=0),
        StringField(validators=[print]),
    ]
    for field in fields:
        with pytest.raises(NotCompilable):
            make_decoder(make_serializer(field))


def test_a_renamed_field_is_decoded_under_its_source() -> None:
    serializer = make_serializer(StringField(source="genre"))
    assert make_decoder(serializer)(b'{"title": "Novel"}') == {"genre": "Novel"}


@with_each_decoder
def test_a_body_is_decoded_also_one_that_is_sent_back_as_it_was_read(
    serializer: type[BookCreateSerializer], decode: BodyDecoder
) -> None:
    book = build_book(title="Über 📖", year=-800)
    assert decode(json.dumps(book).encode()) == book
    ignored = {name: value for name, value in READ_ONLY_FIELDS.items() if name in serializer.ignored_fields}
    assert ignored.keys() >= {"id", "created_at"}
    assert decode(json.dumps({**ignored, **book}).encode()) == book


@with_each_decoder
def test_what_is_ignored_must_be_json(serializer: type[serializers.Serializer[Any]], decode: BodyDecoder) -> None:
    body = json.dumps(build_book()).encode().removesuffix(b"}")
    literals = [b'"\\ud800"', b'"\xff"', b"1e400", b"NaN", b"01", b'"\\u0000"', b"{}", b"[1]", b"1.5"]
    assert [decode(b'%b, "created_at": %b}' % (body, literal)) for literal in literals] == [None] * len(literals)


@with_each_decoder
def test_a_decoder_reads_what_is_right_and_nothing_else(serializer: type[Any], decode: BodyDecoder) -> None:
    book, is_lenient = build_book(), issubclass(serializer, BookCreateSerializer)

    def read_value(rule: Rule) -> str:
        fields = {**{name: json.dumps(value) for name, value in book.items()}, rule.member: rule.literal}
        values = decode(write_object(fields.items()).encode())
        return "" if values is None else ascii({**book, **values})

    def get_expected(rule: Rule) -> str:
        problem = rule.lenient_problem if is_lenient else rule.problem
        # The serializer reads years with a point or an exponent, and cleans white space.
        is_left = problem or (rule.member == "year" and not rule.literal.lstrip("-").isdigit())
        is_left = is_left or (not is_lenient and rule.value != rule.clean_value)
        return "" if is_left else ascii({**book, rule.member: rule.value})

    assert not list_differences(RULES, read_value, get_expected)
