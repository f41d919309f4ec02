"""A served library whose disk is full: what it cannot do, and that everything else goes on."""

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from tests.support.books import build_book
from tests.support.metrics import TOKEN, scrape
from tests.support.programs import UNSHARE
from tests.support.server import Service, create_seeded_file, is_sqlite, serve_library
from tests.support.settings import REQUIRED_SECRETS

pytestmark = pytest.mark.usefixtures("unshare")

ADDRESSES = {
    "/api/books": 200,
    "/api/v2/books": 200,
    "/api/books/1": 200,
    "/api/v2/books/0": 404,
    "/docs": 200,
    "/admin/login/": 200,
    "/nowhere": 404,
    "/api/v2/changes": 401,
}


@contextmanager
def serve_on_small_disk(folder: Path, command: str, database_url: str | None = None) -> Iterator[tuple[Service, Path]]:
    """Serves with a DATA_DIR on a disk of its own, after this command of the shell. Yields where the tests find it."""
    disk = folder / "disk"
    disk.mkdir()
    script = f'mount -t tmpfs -o size=8m tmpfs {disk} && {command}; exec "$@"'
    prefix = [*UNSHARE, "sh", "-c", script, "sh"]
    variables = REQUIRED_SECRETS | {"DATA_DIR": str(disk), "METRICS_TOKEN": TOKEN}
    with serve_library(folder, database_url, prefix, **variables) as service:
        yield service, Path(f"/proc/{service.process.pid}/root{disk}")


def fill(disk: Path) -> None:
    with suppress(OSError), (disk / "fill").open("wb", buffering=0) as file:
        while file.write(b" " * 4096):
            pass


def test_a_disk_that_is_full_at_the_start_costs_counts_alone(tmp_path: Path) -> None:
    with (
        serve_on_small_disk(tmp_path, f"cat /dev/zero > {tmp_path}/disk/fill") as (service, _),
        service.open_client() as client,
    ):
        assert {address: client.get(address).status_code for address in ADDRESSES} == ADDRESSES
        assert scrape(client.get)["disk_free_ratio", "data"] == 0
    assert f"counts no requests for /metrics: {tmp_path}/disk/metrics" in service.log.read_text()


@pytest.mark.skipif(not is_sqlite(), reason="PostgreSQL has disks of its own")
def test_a_disk_that_fills_costs_counts_and_the_writes_of_sqlite_alone(tmp_path: Path) -> None:
    disk = tmp_path / "disk"
    url = f"sqlite:///{disk}/library.sqlite3"
    script = f"cp {create_seeded_file()} {disk}/library.sqlite3"
    with serve_on_small_disk(tmp_path, script, database_url=url) as (service, files), service.open_client() as client:
        fill(files)
        assert {address: client.get(address).status_code for address in ADDRESSES} == ADDRESSES
        assert client.post("/api/v2/books", json=build_book()).status_code == 503
        assert [client.get(address).status_code for address in ("/api/v2/books/1", "/readyz")] == [200, 200]
        samples = scrape(client.get)
    assert samples["disk_free_ratio", "data"] == 0
    # That of the start, before the disk was full.
    assert {key[2] for key in samples if key[0] == "request_duration_seconds_count"} == {"root"}
    assert "Unexpected exit" not in service.log.read_text()
