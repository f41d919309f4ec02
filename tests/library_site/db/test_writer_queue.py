"""On SQLite writers wait in order, those of all processes together, and leave half the threads to readers."""

from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing, suppress
from pathlib import Path

import httpx
import pytest
from django.contrib.auth.models import Group
from django.db import OperationalError, connection, transaction
from pytest_django import Settings

from books.models import Book
from library_site.db import writer_queue
from library_site.db.sqlite import base as sqlite
from library_site.db.timeouts import WriterRefused
from library_site.db.writer_queue import WriterQueue
from tests.support.books import build_book
from tests.support.server import Service, serve_library
from tests.support.sql import connect
from tests.support.waiting import wait_until

pytestmark = pytest.mark.skipif(connection.vendor != "sqlite", reason="PostgreSQL has many writers at a time")

NO_TIME = 0.0
PLENTY = 60.0


@pytest.fixture
def queue(tmp_path: Path) -> WriterQueue:
    return WriterQueue(str(tmp_path / "library.sqlite3"), max_writers=2)


@pytest.fixture
def pool() -> Iterator[ThreadPoolExecutor]:
    with ThreadPoolExecutor(8) as pool:
        yield pool


def start_writers(pool: ThreadPoolExecutor, queue: WriterQueue, count: int, turns: list[int]) -> list[Future[None]]:
    """Lets so many writers join one after the other; each adds its number to `turns` and ends its turn."""

    def write(number: int) -> None:
        queue.wait(PLENTY)
        turns.append(number)
        queue.end_turn()

    futures = []
    for number in range(count):
        futures.append(pool.submit(write, number))
        wait_until(lambda: len(queue.writers) == 1 + len(futures))
    return futures


def test_the_writers_of_a_process_write_in_their_order(queue: WriterQueue, pool: ThreadPoolExecutor) -> None:
    queue.max_writers = 0
    turns: list[int] = []
    queue.wait(NO_TIME)
    futures = start_writers(pool, queue, 6, turns)
    assert turns == []
    queue.end_turn()
    for future in futures:
        future.result(PLENTY)
    assert turns == [0, 1, 2, 3, 4, 5]


def test_a_writer_waits_for_that_of_another_process(tmp_path: Path, pool: ThreadPoolExecutor) -> None:
    here, there = (WriterQueue(str(tmp_path / "library.sqlite3"), max_writers=0) for _ in range(2))
    there.wait(NO_TIME)
    with pytest.raises(WriterRefused):
        here.wait(NO_TIME)
    waiting = pool.submit(here.wait, PLENTY)
    there.end_turn()
    waiting.result(PLENTY)
    assert not there.try_lock_folder()


def test_a_writer_whose_time_is_over_is_passed_over(queue: WriterQueue, pool: ThreadPoolExecutor) -> None:
    turns: list[int] = []
    queue.wait(NO_TIME)
    with pytest.raises(WriterRefused):
        queue.wait(NO_TIME)
    futures = start_writers(pool, queue, 1, turns)
    queue.end_turn()
    futures[0].result(PLENTY)
    assert turns == [0]
    assert not queue.writers


def test_while_a_turn_lasts_only_so_many_writers_wait(
    queue: WriterQueue, pool: ThreadPoolExecutor, monkeypatch: pytest.MonkeyPatch
) -> None:
    queue.wait(NO_TIME)
    futures = start_writers(pool, queue, 1, [])
    monkeypatch.setattr(writer_queue, "EXTRA_WRITER_TIMEOUT", -1)
    with pytest.raises(WriterRefused, match="Too many writers wait"):
        queue.wait(PLENTY)
    queue.end_turn()
    futures[0].result(PLENTY)


def test_while_turns_pass_others_wait_for_a_moment(
    queue: WriterQueue, pool: ThreadPoolExecutor, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(writer_queue, "EXTRA_WRITER_TIMEOUT", PLENTY)
    turns: list[int] = []
    queue.wait(NO_TIME)
    futures = start_writers(pool, queue, 4, turns)
    queue.end_turn()
    for future in futures:
        future.result(PLENTY)
    assert turns == [0, 1, 2, 3]


def test_only_writers_of_half_the_threads_wait_for_long(queue: WriterQueue) -> None:
    deadlines = [queue.join(100, PLENTY)[1] for _ in range(3)]
    assert deadlines == [100 + PLENTY, 100 + PLENTY, 100 + writer_queue.EXTRA_WRITER_TIMEOUT]
    with pytest.raises(WriterRefused, match="Too many writers wait"):
        queue.join(100 + 2 * writer_queue.EXTRA_WRITER_TIMEOUT, PLENTY)


@pytest.mark.parametrize(("process", "max_writers"), [("web", 4), ("worker", 0), ("command", 0)])
def test_only_the_writers_of_a_web_process_are_bounded(settings: Settings, process: str, max_writers: int) -> None:
    settings.LIBRARY_PROCESS, settings.WEB_THREADS = process, 8
    assert sqlite.get_max_writers() == max_writers


@pytest.fixture
def other_process(transactional_db: None) -> WriterQueue:
    """The queue of another process for the database of this one."""
    return WriterQueue(str(connection.settings_dict["NAME"]), max_writers=0)


def may_write(process: WriterQueue) -> bool:
    """Whether the process could have its turn now."""
    with suppress(WriterRefused):
        process.wait(NO_TIME)
        process.end_turn()
        return True
    return False


def test_a_transaction_is_one_turn(other_process: WriterQueue) -> None:
    with transaction.atomic():
        with transaction.atomic():
            Group.objects.create(name="nested")
        assert not may_write(other_process)
    assert may_write(other_process)


def test_a_transaction_that_fails_ends_its_turn(other_process: WriterQueue) -> None:
    with suppress(ZeroDivisionError), transaction.atomic():
        Group.objects.create(name=str(1 / 0))
    assert may_write(other_process)


def test_a_connection_that_closes_ends_its_turn(other_process: WriterQueue) -> None:
    with transaction.atomic():
        connection.close()
        assert may_write(other_process)


def test_a_transaction_that_cannot_begin_ends_its_turn(other_process: WriterQueue) -> None:
    with closing(connect(f"sqlite:///{connection.settings_dict['NAME']}")) as program:
        program.execute("BEGIN IMMEDIATE")
        connection.cursor().execute("PRAGMA busy_timeout = 1")
        with pytest.raises(OperationalError, match="locked"), transaction.atomic():
            pass
    connection.close()
    assert may_write(other_process)


def test_callbacks_of_a_commit_run_after_the_turn(other_process: WriterQueue) -> None:
    states = []
    with transaction.atomic():
        transaction.on_commit(lambda: states.append(may_write(other_process)))
    assert states == [True]


@pytest.mark.parametrize(
    "write",
    [
        lambda: Group.objects.create(name="alone"),
        lambda: Group.objects.filter(name="Librarians").update(name="alone"),
        lambda: Group.objects.filter(name="nobody")._raw_delete(connection.alias),
        lambda: connection.cursor().executemany("INSERT INTO auth_group (name) VALUES (%s)", [["many"]]),
    ],
)
def test_a_statement_of_its_own_waits_too(
    other_process: WriterQueue, monkeypatch: pytest.MonkeyPatch, write: Callable[[], object]
) -> None:
    monkeypatch.setattr(sqlite, "SQLITE_TIMEOUT", NO_TIME)
    other_process.wait(NO_TIME)
    with pytest.raises(WriterRefused):
        write()
    other_process.end_turn()
    write()
    assert may_write(other_process)


def test_a_read_never_waits(other_process: WriterQueue, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sqlite, "SQLITE_TIMEOUT", NO_TIME)
    other_process.wait(NO_TIME)
    assert Book.objects.count() == 0
    other_process.end_turn()


@pytest.fixture
def small_service(tmp_path: Path) -> Iterator[Service]:
    """One process, whose writers may take two of four threads."""
    with serve_library(tmp_path, WEB_THREADS="4") as service:
        yield service


def test_writers_that_wait_leave_threads_to_readers(small_service: Service, pool: ThreadPoolExecutor) -> None:
    def add_book() -> httpx.Response:
        with small_service.open_client() as client:
            return client.post("/api/books", json=build_book())

    add_book()
    with closing(connect(small_service.database_url)) as program, small_service.open_client() as reader:
        program.execute("BEGIN IMMEDIATE")
        futures = [pool.submit(add_book) for _ in range(8)]
        wait_until(lambda: sum(future.done() for future in futures) >= 6)
        statuses = [reader.get("/api/books/1").status_code for _ in range(8)]
        refused = [future.result() for future in futures if future.done()]
        program.rollback()
        answers = [future.result() for future in futures]
    assert statuses == [200] * 8
    assert {(answer.status_code, answer.headers["Retry-After"]) for answer in refused} == {(503, "1")}
    assert Counter(answer.status_code for answer in answers) == {201: 2, 503: 6}
    assert "Traceback" not in small_service.log.read_text()
