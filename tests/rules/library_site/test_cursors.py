"""Cursors of pages. Clients hold them, so the texts of one release are valid in the next."""

import base64
from datetime import UTC, datetime
from uuid import UUID

import msgspec
import pytest

from books.api.pagination import BOOK_CURSOR
from books.history.change_pages import TIME_CURSOR
from library_site.api.cursors import ID_CURSOR
from webhooks.stream import StreamCursor

NOON = datetime(2026, 1, 31, 12)  # noqa: DTZ001  # as keys are


def test_cursors_have_the_texts_of_earlier_releases() -> None:
    assert BOOK_CURSOR.encode(["-title", False, "é", 7]) == "WyItdGl0bGUiLGZhbHNlLCLDqSIsN10"
    assert ID_CURSOR.encode([True, 5]) == "W3RydWUsNV0"
    assert TIME_CURSOR.encode([False, NOON, 9]) == "W2ZhbHNlLCIyMDI2LTAxLTMxVDEyOjAwOjAwIiw5XQ"
    # It had no event.
    assert StreamCursor.decode("WzUsNywiMjAyNi0wMS0zMVQxMjowMDowMFoiXQ") == StreamCursor(5, 7, NOON.replace(tzinfo=UTC))


@pytest.mark.parametrize("pk", [7, 70, 700])
def test_the_release_before_reads_new_cursors_of_the_stream(pk: int) -> None:
    cursor = StreamCursor(5, pk, NOON.replace(tzinfo=UTC), UUID(int=1))
    text = cursor.encode()
    assert StreamCursor.decode(text) == cursor
    # As 1.1.0 does it.
    assert msgspec.json.decode(base64.urlsafe_b64decode(f"{text}=="), type=tuple[int, int, datetime]) == cursor[:3]
    with pytest.raises(ValueError, match="UUID"):
        StreamCursor.decode(text[:-1])
