"""The clocks of the web server and of the worker jump, and that of the database does not."""

import time
from argparse import Namespace
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

from benchmarks.deliveries import count_lost, start_library_and_receiver, summarize_requests, wait_until
from benchmarks.outages.running_writers import SEEDED_BOOK_COUNT, build_finding, serve_writers, wait_for_writes
from benchmarks.support import databases
from benchmarks.support.findings import Finding

WRITER_COUNT = 8
LIBRARY = "libfaketime.so.1"
JUMPS = ("+1h", "-1h", "+40d", "-40d", "+0")
SECONDS_PER_JUMP = 3


def check_clock_jumps(options: Namespace) -> Iterator[Finding]:
    paths = sorted(Path("/usr/lib").glob(f"*/faketime/{LIBRARY}"))
    if not paths:
        yield Finding("Clocks jump", "NOT TRIED: libfaketime is missing (apt-get install faketime)", 1)
        return
    with TemporaryDirectory(prefix="library-clock-") as folder:
        yield jump(Path(folder) / "clock", paths[0])


def jump(clock: Path, faketime: Path) -> Finding:
    clock.write_text("+0")
    # Only the time of day jumps on a real machine, too.
    variables = {"FAKETIME_TIMESTAMP_FILE": str(clock), "FAKETIME_NO_CACHE": "1", "FAKETIME_DONT_FAKE_MONOTONIC": "1"}
    variables["LD_PRELOAD"] = str(faketime)
    with start_library_and_receiver("PostgreSQL", "well") as (library, receiver):
        databases.seed_library(library.url, SEEDED_BOOK_COUNT)
        faked = replace(library, environment=library.environment | variables)
        with faked.run_workers(), serve_writers(library.url, WRITER_COUNT, **variables) as (_, running):
            wait_for_writes(running)
            for offset in JUMPS:
                clock.write_text(offset)
                time.sleep(SECONDS_PER_JUMP)
                wait_for_writes(running)
            for writer in running:
                writer.is_stopped = True
            wait_until(lambda: library.count_rows("state = 'waiting'") == 0)
        requests = receiver.list_requests()
        lost, name = count_lost(library, requests), f"Clocks jump by {', '.join(JUMPS)}"
        return build_finding(name, library.url, running, summarize_requests(requests), wrong=lost)
