"""What the outages share: writers that go on when the library is back, and the check at the end."""

import time
from collections.abc import Sequence

from benchmarks.deliveries import CREATE_ENDPOINTS_CODE, WAIT_TIMEOUT, Library, wait_until
from benchmarks.support import databases, writers
from benchmarks.support.arguments import note
from benchmarks.support.writers import Writer

# The library is not measured before it answers with ten of its books.
SEEDED_BOOK_COUNT = 20
# So many acknowledged writes say that the service is back.
ENOUGH_WRITES = 50


def fill(library: Library, book_count: int = SEEDED_BOOK_COUNT) -> None:
    """Adds books, and an endpoint that nobody serves: each event has one delivery."""
    databases.seed_library(library.url, book_count)
    library.run_code(CREATE_ENDPOINTS_CODE.format(paths=["well"], port=9))


def wait_for_writes(running: Sequence[Writer], count: int = ENOUGH_WRITES) -> float:
    """Waits until so many more writes are acknowledged. Returns the seconds until the first of them."""
    start, before = time.monotonic(), writers.count_acknowledged(running).total()
    wait_until(lambda: writers.count_acknowledged(running).total() > before, WAIT_TIMEOUT)
    seconds = time.monotonic() - start
    wait_until(lambda: writers.count_acknowledged(running).total() >= before + count, WAIT_TIMEOUT)
    return seconds


def wait_for_refusals(running: Sequence[Writer], count: int = ENOUGH_WRITES) -> None:
    before = writers.count_unknown(running).total()
    wait_until(lambda: writers.count_unknown(running).total() >= before + count, WAIT_TIMEOUT)


def note_errors(running: Sequence[Writer]) -> None:
    for error in [error for writer in running for error in writer.errors][:5]:
        note(f"  {error}")
