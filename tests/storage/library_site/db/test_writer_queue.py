"""On SQLite writers wait in order, those of all processes together, and leave half the threads to readers."""

import sqlite3
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing, suppress
from pathlib import Path

import pytest
from django.contrib.auth.models import Group
from django.core import checks
from django.db import OperationalError, connection, transaction
from pytest_django import Settings

from books.models import Book
from library_site.db import writer_queue
from library_site.db.config import SQLITE_TIMEOUT
from library_site.db.errors import DatabaseBusy
from library_site.db.sqlite import base as sqlite
from library_site.db.writer_queue import STALL_TIMEOUT, WriterQueue
from tests.support.server import run_in_shell
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


def test_what_is_left_of_the_time_is_told(queue: WriterQueue) -> None:
    assert queue.wait(NO_TIME) == 0
    queue.end_turn()
    assert PLENTY / 2 < queue.wait(PLENTY) < PLENTY


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
    try:
        refused = pool.submit(here.wait, NO_TIME)
        wait_until(refused.done)
        waiting = pool.submit(here.wait, PLENTY)
    finally:
        # Whoever waits ends then, also one that should not wait any more.
        there.end_turn()
    assert isinstance(refused.exception(), DatabaseBusy)
    waiting.result(PLENTY)
    assert not there.try_lock_folder()


def test_a_writer_whose_time_is_over_is_passed_over(queue: WriterQueue, pool: ThreadPoolExecutor) -> None:
    turns: list[int] = []
    queue.wait(NO_TIME)
    with pytest.raises(DatabaseBusy):
        queue.wait(NO_TIME)
    futures = start_writers(pool, queue, 1, turns)
    queue.end_turn()
    futures[0].result(PLENTY)
    assert turns == [0]
    assert not queue.writers


@pytest.mark.parametrize(("stalled", "message"), [(-1, "Too many writers wait"), (0.01, "took too long")])
def test_while_no_turn_ends_only_so_many_writers_wait(
    queue: WriterQueue, pool: ThreadPoolExecutor, monkeypatch: pytest.MonkeyPatch, stalled: float, message: str
) -> None:
    queue.wait(NO_TIME)
    futures = start_writers(pool, queue, 1, [])
    monkeypatch.setattr(writer_queue, "STALL_TIMEOUT", stalled)
    queue.progressed_at = time.monotonic() + max(stalled, 0)
    with pytest.raises(DatabaseBusy, match=message):
        queue.wait(PLENTY)
    queue.end_turn()
    futures[0].result(PLENTY)


def test_only_writers_of_half_the_threads_wait_for_long(queue: WriterQueue) -> None:
    writers = [queue.join(100) for _ in range(3)]
    assert [queue.get_wait_end(writer, 160, 100) for writer in writers] == [160, 160, 100 + STALL_TIMEOUT]
    assert queue.get_wait_end(writers[2], 100.5, 100) == 100.5
    with pytest.raises(DatabaseBusy, match="Too many writers wait"):
        queue.join(100 + STALL_TIMEOUT)
    # It is one of them when another one has left.
    queue.remove(writers[0])
    assert queue.get_wait_end(writers[2], 160, 100) == 160
    # Where any number may wait, all wait for long.
    queue.max_writers = 0
    assert [queue.get_wait_end(writer, 260, 200) for writer in (*writers[1:], queue.join(200))] == [260] * 3


def test_only_a_turn_that_ends_lets_more_writers_wait(queue: WriterQueue) -> None:
    """One that is given up shows that somebody holds the lock."""
    queue.wait(NO_TIME)
    queue.progressed_at = 100
    with pytest.raises(DatabaseBusy):
        queue.wait(NO_TIME)
    assert queue.progressed_at == 100
    queue.end_turn()
    assert queue.progressed_at > 100


@pytest.fixture
def other_program(tmp_path: Path) -> Iterator[sqlite3.Connection]:
    """Stands for another process: it writes without the queue of this one."""
    with closing(connect(f"sqlite:///{tmp_path / 'library.sqlite3'}")) as program:
        program.execute("PRAGMA journal_mode = WAL")
        program.execute("CREATE TABLE shelf (name)")
        yield program


def test_turns_of_other_processes_let_writers_wait(queue: WriterQueue, other_program: sqlite3.Connection) -> None:
    writers = [queue.join(100) for _ in range(3)]
    now = 100.0
    for name in ("first", "second"):
        now += STALL_TIMEOUT
        with other_program:
            other_program.execute("INSERT INTO shelf VALUES (?)", [name])
        assert queue.get_wait_end(writers[2], 160, now) == now + STALL_TIMEOUT
        queue.join(now)
    now += STALL_TIMEOUT
    # It holds the lock, and ends no turn.
    other_program.execute("BEGIN IMMEDIATE")
    assert queue.get_wait_end(writers[2], 160, now) == now
    with pytest.raises(DatabaseBusy, match="Too many writers wait"):
        queue.join(now)


FORK_CODE = """
import os
from django.conf import settings
from library_site.db.writer_queue import get_queue

database = settings.DATABASES["default"]["NAME"]
get_queue(database, 0).wait(0)
child = os.fork()
if not child:
    # It would write together with its parent.
    os._exit(get_queue(database, 0).try_lock_folder())
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""


def test_a_child_process_has_a_lock_of_its_own(tmp_path: Path) -> None:
    assert run_in_shell(f"sqlite:///{tmp_path / 'library.sqlite3'}", FORK_CODE) == "0\n"


def test_only_the_writers_of_a_web_process_are_bounded(settings: Settings) -> None:
    settings.WEB_THREADS = 8
    for settings.LIBRARY_PROCESS, max_writers in (("web", 4), ("worker", 0), ("command", 0)):
        assert sqlite.get_max_writers() == max_writers


@pytest.fixture
def other_process(transactional_db: None) -> WriterQueue:
    """The queue of another process for the database of this one."""
    return WriterQueue(str(connection.settings_dict["NAME"]), max_writers=0)


def may_write(process: WriterQueue) -> bool:
    """Whether the process could have its turn now."""
    with suppress(DatabaseBusy):
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


def test_a_transaction_that_fails_or_loses_its_connection_ends_its_turn(other_process: WriterQueue) -> None:
    with suppress(ZeroDivisionError), transaction.atomic():
        Group.objects.create(name=str(1 / 0))
    assert may_write(other_process)
    with transaction.atomic():
        connection.close()
        assert may_write(other_process)


STATEMENTS: list[Callable[[], object]] = [
    lambda: Group.objects.create(name="alone"),
    lambda: Group.objects.filter(name="Librarians").update(name="alone too"),
    lambda: Group.objects.filter(name="nobody")._raw_delete(connection.alias),
    lambda: connection.cursor().executemany("INSERT INTO auth_group (name) VALUES (%s)", [["many"]]),
]


def test_a_writer_waits_for_other_programs_for_the_rest_of_its_time(
    other_process: WriterQueue, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The connection itself would wait for another ten seconds. The turn ends too."""
    start = time.monotonic()
    monkeypatch.setattr(sqlite, "SQLITE_TIMEOUT", NO_TIME)
    with closing(connect(f"sqlite:///{connection.settings_dict['NAME']}")) as program:
        program.execute("BEGIN IMMEDIATE")
        for write in (*STATEMENTS, *map(transaction.atomic, STATEMENTS)):
            with pytest.raises(OperationalError, match="locked"):
                write()
            assert may_write(other_process)
    assert time.monotonic() - start < SQLITE_TIMEOUT


def test_callbacks_of_a_commit_run_after_the_turn(other_process: WriterQueue) -> None:
    states = []
    with transaction.atomic():
        transaction.on_commit(lambda: states.append(may_write(other_process)))
    assert states == [True]


def test_a_statement_of_its_own_waits_too_and_a_read_never(
    other_process: WriterQueue, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sqlite, "SQLITE_TIMEOUT", NO_TIME)
    for write in STATEMENTS:
        other_process.wait(NO_TIME)
        assert Book.objects.count() == 0
        with pytest.raises(DatabaseBusy):
            write()
        other_process.end_turn()
        write()
        assert may_write(other_process)


def test_the_checks_of_a_start_wait_for_no_writer(other_process: WriterQueue, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sqlite, "SQLITE_TIMEOUT", NO_TIME)
    # What Django has asked this database, it asks no more.
    monkeypatch.delitem(vars(connection.features), "supports_json_field", raising=False)
    other_process.wait(NO_TIME)
    assert checks.run_checks(tags=[checks.Tags.models], databases=[connection.alias]) == []
    other_process.end_turn()
