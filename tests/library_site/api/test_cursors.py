"""Cursors of pages. Clients hold them, so the texts of one release are valid in the next."""

from datetime import datetime

import pytest

from books.api.pagination import BookCursor
from books.history.cursors import TimeCursor, VersionCursor
from library_site.api.cursors import InvalidCursor, encode_start
from library_site.db.keyset import Start
from tests.support.pages import forge_cursor

pytestmark = pytest.mark.database_independent

NOON = datetime(2026, 1, 31, 12)  # noqa: DTZ001  # as keys are


def test_cursors_have_the_texts_of_earlier_releases() -> None:
    assert BookCursor(sort="-title", backward=False, key="é", pk=7).encode() == "WyItdGl0bGUiLGZhbHNlLCLDqSIsN10"
    assert VersionCursor(5).encode() == "WzVd"
    assert TimeCursor(NOON, 9).encode() == "WyIyMDI2LTAxLTMxVDEyOjAwOjAwIiw5XQ"
    assert encode_start((5,), backward=True) == "W3RydWUsNV0"
    assert encode_start((NOON, 9), backward=False) == "W2ZhbHNlLCIyMDI2LTAxLTMxVDEyOjAwOjAwIiw5XQ"


@pytest.mark.parametrize("backward", [False, True])
def test_a_start_is_decoded_as_it_was_encoded(backward: bool) -> None:
    key = (NOON.replace(microsecond=1), 9)
    assert TimeCursor.decode_start(encode_start(key, backward)) == Start(key, backward)


@pytest.mark.parametrize(
    "members", [[], [5], [1, 5], [True], [True, 5, 5], [True, "5"], [None, 5], {}, None, [True, 2**63 - 1]]
)
def test_others_are_no_starts(members: object) -> None:
    with pytest.raises(InvalidCursor):
        VersionCursor.decode_start(forge_cursor(members))


def test_a_cursor_of_another_length_is_not_decoded() -> None:
    text = VersionCursor(5).encode() + "=" * VersionCursor.max_length
    for decode in (VersionCursor.decode, VersionCursor.decode_start):
        with pytest.raises(InvalidCursor):
            decode(text)
