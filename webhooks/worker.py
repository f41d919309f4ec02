"""The loop that delivers, and works off what was received, until it is told to stop."""

import asyncio
import logging
import signal
import time
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from datetime import datetime
from functools import partial
from random import random
from typing import TypeVar

import psycopg
from django.db import InterfaceError, InternalError, OperationalError, connection

from library_site.db import sql
from webhooks import delivery, inbox
from webhooks.attempts import Outcome, name_result, record_outcomes
from webhooks.delivery import Backlog, LeasedDelivery
from webhooks.endpoints import mail_owner
from webhooks.models import Endpoint
from webhooks.outbox import NOTIFY_CHANNEL, NOTIFY_INTERVAL
from webhooks.sending import DatabaseClock, Sender, open_sender, send_delivery

log = logging.getLogger(__name__)
Result = TypeVar("Result")

# Seconds between looks while nothing is due: where hints come, and on SQLite, which gives none.
POLL_INTERVAL = {"postgresql": 0.5, "sqlite": 0.1}
# Where something was due, more may come without a hint for a while.
BUSY_POLL_INTERVAL, BUSY_FOR = 0.02, 2 * NOTIFY_INTERVAL
# Outcomes are recorded together: what comes within so many seconds, unless enough is here, and no more than so many.
BATCH_WAIT, BATCH_TARGET, MAX_BATCH = 0.01, 50, 500
# Seconds until a database that is away is asked again.
RECONNECT_DELAY = 1.0
INBOX_BATCH = 20
# What the database says that is away, or takes no writes, as a replica that is about to be promoted.
CONNECTION_ERRORS = (InterfaceError, InternalError, OperationalError)
# Seconds between looks at the database's clock.
CLOCK_SYNC_INTERVAL = 60
# Of Django's parameters for a connection, those that are its own or psycopg's.
DJANGO_ONLY_PARAMETERS = {"context", "cursor_factory", "prepare_threshold"}


class Worker:
    """Delivers up to `concurrency` at once; `say` hears a line a second while it does."""

    def __init__(self, concurrency: int, say: Callable[[str], None]) -> None:
        self.concurrency = concurrency
        self.log = say
        # Each thread has a connection of its own: what is slow in one holds up nothing else.
        self.claiming, self.recording, self.receiving = (ThreadPoolExecutor(1) for _ in range(3))
        self.stopping = False
        self.wake_events = {self.claiming: asyncio.Event(), self.receiving: asyncio.Event()}
        self.eager_until = 0.0
        # By endpoint, what is claimed and not recorded yet.
        self.in_flight: Counter[int] = Counter()
        self.outcomes: asyncio.Queue[Outcome] = asyncio.Queue()
        self.counts: Counter[str] = Counter()

    async def run(self, once: bool) -> None:
        """`once`: until nothing is due any more."""
        for number in (signal.SIGTERM, signal.SIGINT):
            asyncio.get_running_loop().add_signal_handler(number, self.stop)
        clock = DatabaseClock(await self.run_in_thread(self.claiming, sql.get_database_time))
        async with open_sender(self.concurrency, clock.now) as sends, asyncio.TaskGroup() as group:
            endless = (self.record(group), self.listen(), self.report_regularly(clock), self.sync_clock(clock))
            beside = [group.create_task(one) for one in endless]
            await asyncio.gather(self.deliver(sends, group, once), self.process_inbox(once))
            await self.report(clock)
            for task in beside:
                task.cancel()
        for who in (self.claiming, self.recording, self.receiving):
            who.submit(close_connection)
            who.shutdown()

    def stop(self) -> None:
        self.stopping = True
        self.wake()

    def wake(self) -> None:
        self.eager_until = time.monotonic() + BUSY_FOR
        for bell in self.wake_events.values():
            bell.set()

    async def deliver(self, sender: Sender, group: asyncio.TaskGroup, once: bool) -> None:
        """Comes back when all that was claimed is recorded."""
        while not self.stopping:
            idle = not self.in_flight
            found = await self.claim(group)
            for one in found:
                self.in_flight[one.endpoint_id] += 1
                group.create_task(self.send(sender, one))
            if once and idle and not found:
                return
            if len(found) < delivery.max_claim(self.concurrency) or not self.has_capacity():
                await self.wait_for_work(self.claiming, found=bool(found))
        while self.in_flight:
            await self.wait_for_work(self.claiming, found=True)

    async def claim(self, group: asyncio.TaskGroup) -> list[LeasedDelivery]:
        if self.in_flight.total() >= self.concurrency:
            return []
        claim = await self.run_in_thread(
            self.claiming, partial(delivery.claim_due, self.concurrency, dict(self.in_flight))
        )
        self.mail_owners(claim.disabled, group)
        return claim.deliveries

    async def send(self, sender: Sender, claimed: LeasedDelivery) -> None:
        self.outcomes.put_nowait(await send_delivery(sender, claimed))

    async def record(self, group: asyncio.TaskGroup) -> None:
        while True:
            batch = [await self.outcomes.get()]
            if self.outcomes.qsize() < BATCH_TARGET:
                await asyncio.sleep(BATCH_WAIT)
            while len(batch) < MAX_BATCH and not self.outcomes.empty():
                batch.append(self.outcomes.get_nowait())
            self.mail_owners(await self.run_in_thread(self.recording, partial(record_outcomes, batch, random)), group)
            for outcome in batch:
                if not outcome.delivered:
                    log.info("Delivery %s failed: %s", outcome.claimed.pk, outcome.status or outcome.error)
            self.in_flight -= Counter(outcome.claimed.endpoint_id for outcome in batch)
            self.counts.update(map(name_result, batch))
            if self.has_capacity():
                self.wake_events[self.claiming].set()

    def has_capacity(self) -> bool:
        """For as many as are claimed at once: a claim costs as much for one."""
        return self.concurrency - self.in_flight.total() >= delivery.max_claim(self.concurrency)

    def mail_owners(self, disabled: list[Endpoint], group: asyncio.TaskGroup) -> None:
        for endpoint in disabled:
            group.create_task(self.run_in_thread(self.receiving, partial(mail_owner, endpoint)))

    async def process_inbox(self, once: bool) -> None:
        while not self.stopping:
            found = await self.run_in_thread(self.receiving, partial(inbox.process_due, INBOX_BATCH, random))
            if once and not found:
                return
            await self.wait_for_work(self.receiving, found=bool(found))

    async def wait_for_work(self, who: ThreadPoolExecutor, found: bool) -> None:
        """Until the bell rings, or it is time to look again."""
        if found:
            self.eager_until = time.monotonic() + BUSY_FOR
        eager = time.monotonic() < self.eager_until and self.has_capacity()
        with suppress(TimeoutError):
            await asyncio.wait_for(
                self.wake_events[who].wait(), BUSY_POLL_INTERVAL if eager else POLL_INTERVAL[connection.vendor]
            )
        self.wake_events[who].clear()

    async def run_in_thread(self, who: ThreadPoolExecutor, question: Callable[[], Result]) -> Result:
        """The database, until it answers or all ends: what is not recorded then is sent again."""
        while True:
            try:
                return await asyncio.get_running_loop().run_in_executor(who, call_reconnecting, question)
            except CONNECTION_ERRORS as error:
                if self.stopping:
                    raise
                log.warning("The database did not answer: %s", type(error).__name__)
                await asyncio.sleep(RECONNECT_DELAY)

    async def listen(self) -> None:
        """Hears the hints of `webhooks.outbox`."""
        if connection.vendor != "postgresql":
            return
        while True:
            with suppress(psycopg.OperationalError):
                parameters = connection.get_connection_params()
                known = {name: value for name, value in parameters.items() if name not in DJANGO_ONLY_PARAMETERS}
                async with await psycopg.AsyncConnection.connect(**known, autocommit=True) as hints:
                    await hints.execute(f"LISTEN {NOTIFY_CHANNEL}")
                    async for _ in hints.notifies():
                        self.wake()
            await asyncio.sleep(RECONNECT_DELAY)

    async def sync_clock(self, clock: DatabaseClock) -> None:
        while True:
            await asyncio.sleep(CLOCK_SYNC_INTERVAL)
            clock.set(await self.run_in_thread(self.claiming, sql.get_database_time))

    async def report_regularly(self, clock: DatabaseClock) -> None:
        while True:
            await asyncio.sleep(1)
            await self.report(clock)

    async def report(self, clock: DatabaseClock) -> None:
        """What was done since it was asked last, if anything was, or is under way."""
        if self.counts or self.in_flight:
            counts, self.counts = self.counts, Counter()
            found = await self.run_in_thread(self.receiving, delivery.get_backlog)
            self.log(format_report(counts, found, clock.now()))


def format_report(counts: Counter[str], backlog: Backlog, now: datetime) -> str:
    told = ", ".join(f"{name} {counts[name]:,}" for name in ("sent", "failed", "dead"))
    oldest = f"{max(0, (now - backlog.oldest).total_seconds()):.0f} s" if backlog.oldest else "-"
    more = "+" if backlog.waiting == delivery.MAX_BACKLOG_COUNT else ""
    return f"{told}, waiting {backlog.waiting:,}{more}, oldest {oldest}"


def close_connection() -> None:
    """Of the thread that runs it."""
    connection.close()


def call_reconnecting(question: Callable[[], Result]) -> Result:
    """A connection that failed is not used again."""
    try:
        return question()
    except CONNECTION_ERRORS:
        connection.close()
        raise
