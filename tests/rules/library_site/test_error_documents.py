"""The errors in the OpenAPI documents, in the format of each version."""

from typing import Any

import pytest
from pytest_django import Settings

from library_site.api.documents.openapi import build_version
from tests.support.openapi import JSON


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
