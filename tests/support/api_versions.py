"""Both versions of the interface, for tests of what both promise."""

from typing import Any, NamedTuple

import httpx
import pytest

from tests.support.books import build_book


class APIVersion(NamedTuple):
    """`books` is the address of the list; `changes` are the methods that change a book; `deleted` is their response."""

    books: str
    changes: tuple[str, ...]
    deleted: tuple[int, bytes]

    def create(self, api: httpx.Client, **fields: Any) -> httpx.Response:
        """Returns the response to the creation of a book."""
        response = api.post(self.books, json=build_book(**fields))
        assert response.status_code == 201, response.text
        return response

    def list_books(self, api: httpx.Client) -> list[dict[str, Any]]:
        content = api.get(self.books).json()
        books: list[dict[str, Any]] = content if isinstance(content, list) else content["results"]
        return books

    def parse_error(self, response: httpx.Response) -> tuple[int, list[str]]:
        """Returns the status, and the fields that the error names."""
        body = response.json()
        if "error" in body:
            return response.status_code, [detail["field"] for detail in body["error"].get("details", [])]
        problems = body["detail"] if isinstance(body["detail"], list) else []
        return response.status_code, [problem["loc"][-1] for problem in problems]


VERSION_1 = APIVersion("/api/books", ("PUT",), (200, b'{"message": "Book deleted successfully"}'))
VERSION_2 = APIVersion("/api/v2/books", ("PUT", "PATCH"), (204, b""))
with_each_version = pytest.mark.parametrize("version", [VERSION_1, VERSION_2], ids=["v1", "v2"])
