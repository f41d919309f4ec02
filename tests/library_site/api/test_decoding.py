"""What a decoder takes, the serializer that it is made of takes alike; a serializer with other rules has no decoder."""

import json
from io import BytesIO
from typing import Any

import pytest
from django.core.validators import MaxLengthValidator, RegexValidator
from hypothesis import given
from rest_framework import serializers

from books.api.v1.views import BookViewSetV1
from books.api.v2.views import BookViewSetV2
from books.models import MAX_LENGTHS
from library_site.api.decoding import BodyDecoder, NotCompilable, make_decoder
from library_site.api.parsers import JSONParser
from library_site.api.serializers import StringField
from tests.support.books import new_book
from tests.support.request_strategies import bodies, equal

READERS = [
    pytest.param(version.body_serializers[action], decode, id=f"{version.etag_prefix} {action}")
    for version in (BookViewSetV1, BookViewSetV2)
    for action, decode in version.decoders.items()
]
readers = pytest.mark.parametrize(("serializer", "decode"), READERS)


class Lenient(StringField):
    """May have rules of its own: it says nothing of them."""


class Plain(serializers.Serializer[Any]):
    title = StringField(max_length=5)


class Checked(Plain):
    def validate(self, attrs: Any) -> Any:
        return attrs


class CheckedMember(Plain):
    def validate_title(self, value: str) -> str:
        return value


class RunOtherwise(Plain):
    def run_validation(self, data: Any = serializers.empty) -> Any:
        return super().run_validation(data)


class ReadOtherwise(Plain):
    def to_internal_value(self, data: Any) -> Any:
        return super().to_internal_value(data)


class Together(Plain):
    class Meta:
        validators = [print]


def of(field: serializers.Field[Any, Any, Any, Any]) -> type[serializers.Serializer[Any]]:
    """A serializer with this field alone."""
    return type("One", (serializers.Serializer,), {"title": field})


@pytest.mark.once
@pytest.mark.parametrize("serializer", [Checked, CheckedMember, RunOtherwise, ReadOtherwise, Together])
def test_a_serializer_that_does_more_has_no_decoder(serializer: type[serializers.Serializer[Any]]) -> None:
    with pytest.raises(NotCompilable):
        make_decoder(serializer)


@pytest.mark.once
@pytest.mark.parametrize(
    "field",
    [
        serializers.CharField(trim_whitespace=False),
        serializers.IntegerField(),
        serializers.ListField(),
        Plain(),
        Lenient(),
        StringField(trim_whitespace=True),
        StringField(source="name"),
        StringField(read_only=True),
        StringField(default="a"),
        StringField(allow_null=True),
        StringField(validators=[RegexValidator("a")]),
        StringField(max_length=5, validators=[MaxLengthValidator(3)]),
        StringField(allow_blank=False, min_length=0),
        StringField(validators=[print]),
    ],
    ids=repr,
)
def test_a_field_with_another_rule_has_no_decoder(field: serializers.Field[Any, Any, Any, Any]) -> None:
    with pytest.raises(NotCompilable):
        make_decoder(of(field))


@pytest.mark.once
@readers
def test_what_is_usual_is_decoded(serializer: type[serializers.Serializer[Any]], decode: BodyDecoder) -> None:
    book = new_book(title="Über 📖", year=-800)
    assert decode(json.dumps(book).encode()) == book


@pytest.mark.once
@pytest.mark.parametrize("name", MAX_LENGTHS)
@readers
def test_a_decoder_knows_how_long_a_text_may_be(
    serializer: type[serializers.Serializer[Any]], decode: BodyDecoder, name: str
) -> None:
    longest = new_book(**{name: "𐐨" * MAX_LENGTHS[name]})
    longer = {**longest, name: f"{longest[name]}𐐨"}
    assert decode(json.dumps(longest).encode()) == longest
    assert decode(json.dumps(longer).encode()) is None


@pytest.mark.once
@equal
@given(body=bodies)
@readers
def test_what_is_decoded_is_what_the_serializer_reads(
    serializer: type[serializers.Serializer[Any]], decode: BodyDecoder, body: bytes
) -> None:
    decoded = decode(body)
    assert decoded is None or typed(decoded) == typed(read(serializer, body))


def read(serializer: type[serializers.Serializer[Any]], body: bytes) -> Any:
    made = serializer(data=JSONParser().parse(BytesIO(body)))
    made.is_valid(raise_exception=True)
    return made.validated_data


def typed(values: Any) -> list[tuple[str, type, Any]]:
    return [(name, type(value), value) for name, value in values.items()]
