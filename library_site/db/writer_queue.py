"""Lets the writers of a process wait in order for an SQLite database, and one process write at a time.

SQLite's own wait has no order: it sleeps, and whoever comes meanwhile overtakes. SQLite still locks the database. So a
program that writes without this queue does no harm, and only waits longer.
"""

import fcntl
import os
import time
from collections import deque
from contextlib import suppress
from functools import cache
from pathlib import Path
from threading import Lock

from library_site.db.timeouts import WriterRefused

# Seconds between two tries to lock the folder: `flock` can wait by itself, but without an end.
POLL_INTERVAL = 0.002
# Seconds that writers beyond `max_writers` wait, and only while turns pass.
EXTRA_WRITER_TIMEOUT = 0.2


class WriterQueue:
    """The writers of this process, of which the first may write.

    `max_writers` of them wait for their whole timeout, the others for EXTRA_WRITER_TIMEOUT; 0 means that all wait for
    their whole timeout.
    """

    def __init__(self, database: str, max_writers: int) -> None:
        self.max_writers = max_writers
        self.lock = Lock()
        # Each writer waits at a lock of its own, which is released when its turn comes.
        self.writers: deque[Lock] = deque()
        self.turn_began_at = 0.0
        # The processes lock the folder of the database: this needs no file, and SQLite locks the others itself.
        self.folder = os.open(Path(database).absolute().parent, os.O_RDONLY)

    def wait(self, timeout: float) -> None:
        """Returns when it is the turn of the caller, which `end_turn` ends. Raises WriterRefused."""
        writer, deadline = self.join(time.monotonic(), timeout)
        try:
            if not writer.acquire(timeout=max(0.0, deadline - time.monotonic())):
                raise WriterRefused("The writers before this one took too long.")
            self.lock_folder(deadline)
        except BaseException:
            self.remove(writer)
            raise

    def end_turn(self) -> None:
        fcntl.flock(self.folder, fcntl.LOCK_UN)
        self.remove(self.writers[0])

    def join(self, now: float, timeout: float) -> tuple[Lock, float]:
        """Returns the lock at which the writer waits, and until when. Raises WriterRefused."""
        writer = Lock()
        with self.lock:
            if self.max_writers and len(self.writers) >= self.max_writers:
                timeout = min(timeout, EXTRA_WRITER_TIMEOUT)
                if now - self.turn_began_at > EXTRA_WRITER_TIMEOUT:
                    raise WriterRefused("Too many writers wait.")
            if self.writers:
                writer.acquire()
            else:
                self.turn_began_at = now
            self.writers.append(writer)
        return writer, now + timeout

    def remove(self, writer: Lock) -> None:
        with self.lock:
            is_first = writer is self.writers[0]
            self.writers.remove(writer)
            if is_first and self.writers:
                self.turn_began_at = time.monotonic()
                self.writers[0].release()

    def lock_folder(self, deadline: float) -> None:
        """Raises WriterRefused."""
        while not self.try_lock_folder():
            if time.monotonic() > deadline:
                raise WriterRefused("The writers of another process took too long.")
            time.sleep(POLL_INTERVAL)

    def try_lock_folder(self) -> bool:
        with suppress(BlockingIOError):
            fcntl.flock(self.folder, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return True
        return False


@cache
def get_queue(database: str, max_writers: int) -> WriterQueue:
    """Returns the queue of this process. If two threads create one each, the folder's lock still lets one write."""
    return WriterQueue(database, max_writers)


# A child process would share the folder's lock with its parent.
os.register_at_fork(after_in_child=get_queue.cache_clear)
