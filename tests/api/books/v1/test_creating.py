"""POST /api/books on a server in another time zone."""

from datetime import UTC, datetime
from pathlib import Path

from tests.support.books import build_book
from tests.support.server import serve_library


def test_the_time_of_creation_is_in_utc_on_a_server_in_tokyo(tmp_path: Path) -> None:
    with serve_library(tmp_path, TZ="Asia/Tokyo", PGTZ="Asia/Tokyo") as service, service.open_client() as client:
        before = datetime.now(UTC).replace(tzinfo=None)
        created_book = client.post("/api/books", json=build_book()).json()
        after = datetime.now(UTC).replace(tzinfo=None)
        read = client.get(f"/api/books/{created_book['id']}").json()
    assert before <= datetime.fromisoformat(created_book["created_at"]) <= after
    assert read == created_book
