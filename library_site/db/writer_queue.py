"""Queues the writers of an SQLite database in each process, and lets one process write at a time.

SQLite's own wait has no order: it sleeps, and a later writer can get the lock first. SQLite still locks the database.
So a program that writes without this queue does no harm; it only waits longer.
"""

import fcntl
import os
import time
from collections import deque
from contextlib import suppress
from functools import cache
from pathlib import Path
from threading import Lock

from library_site.db.errors import DatabaseBusy

# Seconds between two tries to lock the folder: `flock` itself can wait, but has no time-out.
LOCK_POLL_INTERVAL = 0.002
# If no turn of any process ends for so many seconds, writers beyond `max_writers` stop waiting: something holds the
# lock, and their threads could answer reads instead.
STALL_TIMEOUT = 1.0
# SQLite writes the commits of all processes to this file beside the database.
WAL_SUFFIX = "-wal"


class WriterQueue:
    """The writers of this process. The first one may write.

    While turns end, every writer waits for its full time-out. While none ends, only the first `max_writers` do; 0 means
    all.
    """

    def __init__(self, database: str, max_writers: int) -> None:
        self.max_writers = max_writers
        self.lock = Lock()
        # Each writer waits for its own lock, which is released at the beginning of its turn.
        self.writers: deque[Lock] = deque()
        # When this process last noticed the end of a turn.
        self.progressed_at = float("-inf")
        self.wal = Path(f"{database}{WAL_SUFFIX}")
        self.wal_state: tuple[int, ...] = ()
        # The processes lock the folder of the database: this needs no file, and SQLite locks the others itself.
        self.folder = os.open(Path(database).absolute().parent, os.O_RDONLY)

    def wait(self, timeout: float) -> float:
        """Waits for the turn of the caller, which must call `end_turn`. Returns the rest of the time-out.

        Raises DatabaseBusy.
        """
        deadline = time.monotonic() + timeout
        writer = self.join(time.monotonic())
        try:
            self.wait_for_turn(writer, deadline)
            self.lock_folder(deadline)
        except BaseException:
            self.remove(writer)
            raise
        return max(0.0, deadline - time.monotonic())

    def end_turn(self) -> None:
        fcntl.flock(self.folder, fcntl.LOCK_UN)
        with self.lock:
            self.progressed_at = time.monotonic()
        self.remove(self.writers[0])

    def join(self, now: float) -> Lock:
        """Adds a writer and returns the lock that it waits for. Raises DatabaseBusy."""
        writer = Lock()
        with self.lock:
            if not self.writers:
                self.progressed_at = now
            if self.is_beyond_limit(len(self.writers)) and self.get_stall_end(now) <= now:
                raise DatabaseBusy("Too many writers wait.")
            if self.writers:
                writer.acquire()
            self.writers.append(writer)
        return writer

    def wait_for_turn(self, writer: Lock, deadline: float) -> None:
        """Raises DatabaseBusy."""
        now = time.monotonic()
        while not writer.acquire(timeout=max(0.0, self.get_wait_end(writer, deadline, now) - now)):
            now = time.monotonic()
            if now >= self.get_wait_end(writer, deadline, now):
                raise DatabaseBusy("The writers before this one took too long.")

    def get_wait_end(self, writer: Lock, deadline: float, now: float) -> float:
        """Returns the time at which the writer stops waiting if no turn ends before."""
        with self.lock:
            is_beyond = self.is_beyond_limit(self.writers.index(writer))
            return min(deadline, self.get_stall_end(now)) if is_beyond else deadline

    def is_beyond_limit(self, position: int) -> bool:
        return 0 < self.max_writers <= position

    def get_stall_end(self, now: float) -> float:
        """Returns when writers beyond `max_writers` stop waiting if no turn ends before. The caller has `lock`.

        SQLite's log shows the commits of other processes. Its time is not compared with a clock, which can jump.
        """
        if self.progressed_at + STALL_TIMEOUT <= now and (state := self.stat_wal()) != self.wal_state:
            self.progressed_at, self.wal_state = now, state
        return self.progressed_at + STALL_TIMEOUT

    def stat_wal(self) -> tuple[int, ...]:
        with suppress(FileNotFoundError):
            status = self.wal.stat()
            return status.st_ino, status.st_size, status.st_mtime_ns
        return ()

    def remove(self, writer: Lock) -> None:
        with self.lock:
            is_first = writer is self.writers[0]
            self.writers.remove(writer)
            if is_first and self.writers:
                self.writers[0].release()

    def lock_folder(self, deadline: float) -> None:
        """Raises DatabaseBusy."""
        while not self.try_lock_folder():
            if time.monotonic() > deadline:
                raise DatabaseBusy("The writers of another process took too long.")
            time.sleep(LOCK_POLL_INTERVAL)

    def try_lock_folder(self) -> bool:
        with suppress(BlockingIOError):
            fcntl.flock(self.folder, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return True
        return False


@cache
def get_queue(database: str, max_writers: int) -> WriterQueue:
    """Returns the queue of this process. If two threads create one each, the folder's lock still admits one writer."""
    return WriterQueue(database, max_writers)


# A child process would share the folder's lock with its parent.
os.register_at_fork(after_in_child=get_queue.cache_clear)
