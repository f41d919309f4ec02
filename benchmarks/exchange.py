"""Imports and exports a million books while somebody else changes books: `python -m benchmarks.exchange`.

Each format is imported into a library of its own, by `import_books`, and exported from it. The file that comes out
holds the books of the file that went in.
"""

import csv
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from argparse import ArgumentParser
from datetime import datetime
from pathlib import Path
from typing import Any, NamedTuple, TextIO

import httpx
from rich.console import Console
from rich.table import Table

from benchmarks import competitors
from benchmarks.deliveries import (
    CREATE_ENDPOINTS_CODE,
    LIBRARIES_BY_DATABASE,
    Library,
    Receiver,
    start_receiver,
    wait_until,
)
from benchmarks.operations import ALONE_SECONDS, Writer, run_writer
from benchmarks.support import databases
from benchmarks.support.arguments import make_integer_parser, make_list_parser, note
from benchmarks.support.credentials import create_credentials
from books.files.seeds import make_isbn

# Books that are there before the import, which the other writer changes.
OTHER_BOOKS = 1_000
ISBN_SEED = 8
ISBN_PREFIX = f"9799{ISBN_SEED}"
MEMBERS = ("title", "author", "year", "isbn", "genre", "available")
DELAYS_SQL = "SELECT uuid, created_at FROM webhooks_event"


class Run(NamedTuple):
    """A command from its begin to its end, with the most memory that it had."""

    seconds: float
    megabytes: float


class Pace(NamedTuple):
    """How long the changes of the other writer took, and their events until they were received, in seconds."""

    waits: list[float]
    delays: list[float]

    def __str__(self) -> str:
        return f"{describe(self.waits)}; {describe(self.delays)}"


class Result(NamedTuple):
    name: str
    imported: Run
    exported: Run
    alone: Pace
    beside: Pace


def main() -> None:
    parser = ArgumentParser(prog="python -m benchmarks.exchange", description=__doc__)
    parser.add_argument("--books", type=make_integer_parser(2_000, 10_000_000), default=1_000_000)
    parser.add_argument("--databases", type=make_list_parser(LIBRARIES_BY_DATABASE), default=[*LIBRARIES_BY_DATABASE])
    parser.add_argument("--formats", type=make_list_parser(FORMATS), default=[*FORMATS])
    options = parser.parse_args()
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    table = Table(title=f"{options.books:,} books, without events, one batch after the other")
    for column in ("", "import", "export", "changes and deliveries alone", "beside the import"):
        table.add_column(column)
    for database in options.databases:
        for format in options.formats:
            result = measure(database, format, options.books)
            runs = [f"{run.seconds:.0f} s, {run.megabytes:.0f} MB" for run in (result.imported, result.exported)]
            cells = (result.name, *runs, str(result.alone), str(result.beside))
            note("  ".join(cells))
            table.add_row(*cells)
    Console(width=160).print(table)


def measure(database: str, format: str, books: int) -> Result:
    note(f"{database}, {format}")
    with (
        tempfile.TemporaryDirectory(prefix="library-exchange-") as folder,
        LIBRARIES_BY_DATABASE[database]() as library,
        start_receiver() as receiver,
    ):
        sent, exported = Path(folder) / f"in.{format}", Path(folder) / f"out.{format}"
        with sent.open("w", encoding="utf-8", newline="") as file:
            FORMATS[format](file, books)
        databases.seed_library(library.url, OTHER_BOOKS)
        library.run_code(CREATE_ENDPOINTS_CODE.format(paths=("hook",), port=receiver.port))
        with competitors.start_library(library.url, **library.environment) as server, library.run_workers():
            key = dict([create_credentials(library.url, server.port)["api-key"]])
            client = httpx.Client(base_url=f"http://127.0.0.1:{server.port}", headers=key, timeout=60)
            with client, run_writer(Writer(client, OTHER_BOOKS)) as writer:
                time.sleep(ALONE_SECONDS)
                alone_count, began_at = len(writer.seconds), time.time()
                imported = run(library, "import_books", str(sent), "--no-events")
                ended_at, all_waits = time.time(), list(writer.seconds)
            wait_until(lambda: library.count_rows("state = 'waiting'") == 0)
            exported_run = run(library, "export_books", str(exported))
        if writer.errors:
            raise RuntimeError(writer.errors[0])
        require_same_books(sent, exported)
        delays = list_delays(library, receiver)
        alone = Pace(all_waits[:alone_count], [delay for at, delay in delays if at < began_at])
        beside = Pace(all_waits[alone_count:], [delay for at, delay in delays if began_at <= at < ended_at])
        return Result(f"{database}, {format}", imported, exported_run, alone, beside)


def make_book(number: int) -> dict[str, Any]:
    """Returns the members of a book; no two have one isbn."""
    return {
        "title": f"A book of many, volume {number}",
        "author": f"Author {number % 50_000}, Given Name",
        "year": 1500 + number % 500,
        "isbn": make_isbn(ISBN_SEED, number),
        "genre": ("Novel", "Poetry", "History", "Children")[number % 4],
        "available": number % 3 > 0,
    }


def write_csv(file: TextIO, count: int) -> None:
    writer = csv.DictWriter(file, MEMBERS)
    writer.writeheader()
    writer.writerows(map(make_book, range(count)))


def write_json_lines(file: TextIO, count: int) -> None:
    file.writelines(f"{json.dumps(make_book(number))}\n" for number in range(count))


FORMATS = {"csv": write_csv, "jsonl": write_json_lines}


def run(library: Library, *command: str) -> Run:
    """Runs a command of `manage.py`. Raises CalledProcessError."""
    start = time.perf_counter()
    call = [sys.executable, "manage.py", *command]
    process = subprocess.Popen(call, cwd=competitors.ROOT, env=library.environment, stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    seconds = time.perf_counter() - start
    if status:
        raise subprocess.CalledProcessError(os.waitstatus_to_exitcode(status), call)
    return Run(seconds, usage.ru_maxrss / 1024)


def list_delays(library: Library, receiver: Receiver) -> list[tuple[float, float]]:
    """Returns the Unix time of each change, and the seconds from there to the delivery of its event."""
    received = {request.event.replace("-", ""): request.received_at for request in receiver.list_requests()}
    rows: list[tuple[Any, Any]] = library.execute_sql(DELAYS_SQL)
    times = [(str(uuid).replace("-", ""), parse_time(created_at)) for uuid, created_at in rows]
    return [(at, received[uuid] - at) for uuid, at in times if uuid in received]


def parse_time(value: datetime | str) -> float:
    """SQLite stores times as texts, in UTC."""
    moment = value if isinstance(value, datetime) else datetime.fromisoformat(f"{value}+00:00")
    return moment.timestamp()


def require_same_books(sent: Path, exported: Path) -> None:
    """Raises RuntimeError unless both files have the same books, whatever their order, ids and times are."""
    sent_books, exported_books = summarize(sent), summarize(exported)
    if sent_books != exported_books:
        raise RuntimeError(f"{sent_books} went in, and {exported_books} came out.")


def summarize(path: Path) -> tuple[int, int]:
    """Returns the number of the books with an isbn of `make_book`, and a sum over their members."""
    with path.open(encoding="utf-8", newline="") as file:
        books = csv.DictReader(file) if path.suffix == ".csv" else map(json.loads, file)
        sums = [hash(tuple(str(book[name]).lower() for name in MEMBERS)) for book in books if is_made(book["isbn"])]
    return len(sums), sum(sums)


def is_made(isbn: str) -> bool:
    return isbn.startswith(ISBN_PREFIX)


def describe(seconds: list[float]) -> str:
    """The median and the longest, in ms."""
    milliseconds = sorted(1000 * value for value in seconds) or [0]
    return f"{milliseconds[len(milliseconds) // 2]:,.0f} to {milliseconds[-1]:,.0f} ms"


if __name__ == "__main__":
    main()
