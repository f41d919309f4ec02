"""The errors in the OpenAPI documents, in the format of each version."""

from typing import Any

import pytest
from pytest_django import Settings

from books.writing.changes import BookNotFound
from library_site.api.documents.errors import (
    REQUEST_ID_EXAMPLE,
    EnvelopeSerializer,
    MessageErrorSerializer,
    ProblemsSerializer,
    build_response,
    document_error,
    document_invalid,
)
from library_site.api.documents.openapi import build_version
from library_site.http.errors import detail_format, envelope_format
from tests.support.openapi import JSON


def test_a_refusal_is_documented_by_its_class_in_the_format_of_each_version() -> None:
    (error,) = document_error(BookNotFound).values()
    first, second = (build_response(error, error_format) for error_format in (detail_format, envelope_format))
    assert first.description == second.description == "No book has this id."
    assert (first.response, first.examples[0].value) == (MessageErrorSerializer, {"detail": "Book not found"})
    content = {"code": "NOT_FOUND", "message": "Book not found", "requestId": REQUEST_ID_EXAMPLE}
    assert (second.response, second.examples[0].value) == (EnvelopeSerializer, {"error": content})


def test_an_invalid_field_is_documented_as_a_list_of_problems_in_version_1() -> None:
    (error,) = document_invalid("limit", "Too large.", "query", "less_than_equal").values()
    response = build_response(error, detail_format)
    problem = {"loc": ["query", "limit"], "msg": "Too large.", "type": "less_than_equal"}
    assert (response.response, response.examples[0].value) == (ProblemsSerializer, {"detail": [problem]})


@pytest.mark.parametrize("rate", [(3, 60), None])
def test_every_operation_answers_429_where_there_is_a_rate_limit(
    settings: Settings, rate: tuple[int, int] | None
) -> None:
    settings.API_RATE_LIMIT = rate
    document = build_version(1)
    operations = [operation for methods in document["paths"].values() for operation in methods.values()]
    limited = [operation["responses"]["429"] for operation in operations if "429" in operation["responses"]]
    assert len(limited) == (5 if rate else 0)
    for response in limited:
        check_retry_after(response)


def check_retry_after(response: dict[str, Any]) -> None:
    assert list(response["headers"]) == ["Retry-After"]
    assert response["content"][JSON]["schema"] == {"$ref": "#/components/schemas/Error"}
