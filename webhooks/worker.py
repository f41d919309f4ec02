"""The worker: it sends deliveries and processes received events until it is stopped."""

import asyncio
import logging
import time
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from datetime import datetime
from functools import partial
from random import random
from threading import Event
from typing import TypeVar

import psycopg
from django.db import connection
from django.utils import timezone

from library_site.db import sql
from library_site.db.connections import get_libpq_parameters
from library_site.db.sql import execute
from library_site.jobs.worker import (
    CONNECTION_ERRORS,
    RECONNECT_DELAY,
    STOP_SIGNALS,
    Queue,
    call_reconnecting,
    run_queue,
)
from oauth.accounts import mails
from webhooks import inbox
from webhooks.delivery import leases
from webhooks.delivery.attempts import AttemptResult, record_results
from webhooks.delivery.leases import Backlog, LeasedDelivery, select_due_deliveries
from webhooks.delivery.sending import DatabaseClock, Sender, open_sender, send_delivery
from webhooks.endpoints import disable_ended, mail_owner
from webhooks.expiry import delete_expired_if_due
from webhooks.models import Endpoint
from webhooks.outbox import NOTIFY_CHANNEL, NOTIFY_INTERVAL

log = logging.getLogger(__name__)
Result = TypeVar("Result")

# Seconds between polls while nothing is due: without notifications (on SQLite, or on PostgreSQL behind a pooler), and
# with them.
POLL_INTERVAL = {"sqlite": 0.1, "postgresql": 0.5}
NOTIFIED_POLL_INTERVAL = 3.0
# Seconds between polls after work was due, and how long they last: new work may come without a notification then.
BUSY_POLL_INTERVAL, BUSY_SECONDS = 0.02, 2 * NOTIFY_INTERVAL
# Results are recorded in batches. A batch waits this many seconds for more results, unless BATCH_TARGET are there.
BATCH_WAIT, BATCH_TARGET, MAX_BATCH = 0.01, 50, 500
INBOX_BATCH, INBOX_INTERVAL, MAIL_INTERVAL = 20, 0.5, 3.0
# Seconds between reads of the database's clock, and between runs of CLEANING.
REPEAT_INTERVAL = 60
INBOX = Queue(lambda _: inbox.process_due(INBOX_BATCH, random), INBOX_INTERVAL)
MAILS = Queue(lambda _: mails.send_due(timezone.now()), MAIL_INTERVAL)
ENDED_ENDPOINTS = Queue(lambda _: disable_ended(), REPEAT_INTERVAL)
CLEANING = Queue(lambda stop: clean(stop), REPEAT_INTERVAL)


class Worker:
    """Has up to `concurrency` deliveries in flight. While there is work, `write_line` gets a report each second."""

    def __init__(self, concurrency: int, write_line: Callable[[str], None]) -> None:
        self.concurrency = concurrency
        self.write_line = write_line
        # Each executor has one thread with its own connection: a slow statement delays no other executor.
        self.executors = [ThreadPoolExecutor(1) for _ in range(3)]
        self.claim_executor, self.record_executor, self.other_executor = self.executors
        self.stopped = Event()
        # Wakes the search for deliveries.
        self.wake_event = asyncio.Event()
        # Whether PostgreSQL's notifications arrive.
        self.is_notified = False
        self.busy_until = 0.0
        # The number of deliveries that are claimed and not recorded yet, by endpoint.
        self.in_flight: Counter[int] = Counter()
        self.results: asyncio.Queue[AttemptResult] = asyncio.Queue()
        self.counts: Counter[str] = Counter()
        self.report_event = asyncio.Event()
        self.report_lock = asyncio.Lock()

    async def run(self, once: bool) -> None:
        """With `once`, returns when nothing is due any more."""
        for number in STOP_SIGNALS:
            asyncio.get_running_loop().add_signal_handler(number, self.stop)
        log.info("The worker has started.")
        clock = DatabaseClock(await self.run_in_thread(self.claim_executor, sql.get_database_time))
        async with open_sender(clock.now) as sender, asyncio.TaskGroup() as group:
            loops = [
                self.record(group),
                self.listen(),
                self.poll(),
                self.report_regularly(clock),
                self.set_clock(clock),
            ]
            background_tasks = [group.create_task(loop) for loop in loops]
            try:
                await asyncio.gather(self.deliver(sender, group, once), *self.run_queues(once))
            finally:
                self.stopped.set()
            await self.report(clock)
            for task in background_tasks:
                task.cancel()
        for executor in self.executors:
            executor.submit(close_connection)
            executor.shutdown()
        log.info("The worker has stopped.")

    def stop(self) -> None:
        log.info("The worker stops: %d deliveries are under way.", self.in_flight.total())
        self.stopped.set()
        self.wake_event.set()

    def wake(self) -> None:
        """Makes the worker look for deliveries at once, and poll often for some time."""
        self.busy_until = time.monotonic() + BUSY_SECONDS
        self.wake_event.set()

    def run_queues(self, once: bool) -> list[asyncio.Future[None]]:
        """Runs each queue in a thread of its own, because a mail server or a handler can be slow."""
        loop, queues = asyncio.get_running_loop(), [INBOX, MAILS, ENDED_ENDPOINTS if once else CLEANING]
        executors = [ThreadPoolExecutor(1) for _ in queues]
        self.executors += executors
        return [
            loop.run_in_executor(executor, run_queue, queue, self.stopped, once)
            for executor, queue in zip(executors, queues, strict=True)
        ]

    async def deliver(self, sender: Sender, group: asyncio.TaskGroup, once: bool) -> None:
        """Returns when the results of all claimed deliveries are recorded."""
        while not self.stopped.is_set():
            was_idle = not self.in_flight
            deliveries = await self.claim(group)
            if deliveries:
                self.report_event.set()
            for leased_delivery in deliveries:
                self.in_flight[leased_delivery.endpoint_id] += 1
                group.create_task(self.send(sender, leased_delivery))
            if once and was_idle and not deliveries:
                return
            if len(deliveries) < leases.get_claim_limit(self.concurrency) or not self.has_capacity():
                await self.wait_for_work(is_busy=bool(deliveries))
        while self.in_flight:
            await self.wait_for_work(is_busy=True)

    async def claim(self, group: asyncio.TaskGroup) -> list[LeasedDelivery]:
        if self.in_flight.total() >= self.concurrency:
            return []
        claim = await self.run_in_thread(
            self.claim_executor, partial(leases.claim_deliveries, self.concurrency, dict(self.in_flight))
        )
        self.mail_owners(claim.disabled_endpoints, group)
        return claim.deliveries

    async def send(self, sender: Sender, leased_delivery: LeasedDelivery) -> None:
        self.results.put_nowait(await send_delivery(sender, leased_delivery))

    async def record(self, group: asyncio.TaskGroup) -> None:
        while True:
            batch = [await self.results.get()]
            if self.results.qsize() < BATCH_TARGET:
                await asyncio.sleep(BATCH_WAIT)
            while len(batch) < MAX_BATCH and not self.results.empty():
                batch.append(self.results.get_nowait())
            record = partial(record_results, batch, random)
            self.mail_owners(await self.run_in_thread(self.record_executor, record), group)
            for result in batch:
                if not result.is_delivered:
                    log.info("Delivery %s failed: %s", result.delivery.pk, result.status or result.error)
            self.in_flight -= Counter(result.delivery.endpoint_id for result in batch)
            self.counts.update(result.outcome for result in batch)
            if self.has_capacity():
                self.wake_event.set()

    def has_capacity(self) -> bool:
        """Tells whether there is capacity for a full claim. A claim of one delivery would cost as much."""
        return self.concurrency - self.in_flight.total() >= leases.get_claim_limit(self.concurrency)

    def mail_owners(self, disabled_endpoints: list[Endpoint], group: asyncio.TaskGroup) -> None:
        for endpoint in disabled_endpoints:
            group.create_task(self.run_in_thread(self.other_executor, partial(mail_owner, endpoint)))

    async def poll(self) -> None:
        """Finds deliveries that have no notification: retries, and those whose lease ended because a worker died."""
        while True:
            await asyncio.sleep(NOTIFIED_POLL_INTERVAL if self.is_notified else POLL_INTERVAL[connection.vendor])
            if await self.run_in_thread(self.claim_executor, select_due_deliveries().exists):
                self.wake_event.set()

    async def wait_for_work(self, *, is_busy: bool) -> None:
        """Waits until the worker is woken. Soon after work was due, it waits for BUSY_POLL_INTERVAL at most."""
        if is_busy:
            self.busy_until = time.monotonic() + BUSY_SECONDS
        polls_often = time.monotonic() < self.busy_until and self.has_capacity()
        with suppress(TimeoutError):
            await asyncio.wait_for(self.wake_event.wait(), BUSY_POLL_INTERVAL if polls_often else None)
        self.wake_event.clear()

    async def run_in_thread(self, executor: ThreadPoolExecutor, function: Callable[[], Result]) -> Result:
        """Runs a function that uses the database, and retries until the database answers.

        If the worker is stopping, the error is raised: deliveries without a recorded result are sent again.
        """
        while True:
            try:
                return await asyncio.get_running_loop().run_in_executor(executor, call_reconnecting, function)
            except CONNECTION_ERRORS:
                if self.stopped.is_set():
                    raise
                await asyncio.sleep(RECONNECT_DELAY)

    async def listen(self) -> None:
        """Wakes the worker at each notification. It sends the first one itself, to see whether notifications arrive."""
        if connection.vendor != "postgresql":
            return
        while True:
            with suppress(psycopg.OperationalError):
                parameters = get_libpq_parameters(connection)
                connect = partial(psycopg.AsyncConnection.connect, **parameters, autocommit=True)
                async with await connect() as listener:
                    await listener.execute(f"LISTEN {NOTIFY_CHANNEL}")
                    await self.run_in_thread(self.claim_executor, lambda: execute(f"NOTIFY {NOTIFY_CHANNEL}"))
                    await self.receive_notifications(listener)
            self.is_notified = False
            await asyncio.sleep(RECONNECT_DELAY)

    async def receive_notifications(self, listener: psycopg.AsyncConnection) -> None:
        """Ends with OperationalError. psycopg's own generator of notifications wakes up ten times a second."""
        loop, socket, readable = asyncio.get_running_loop(), listener.fileno(), asyncio.Event()
        loop.add_reader(socket, readable.set)
        try:
            while await readable.wait():
                readable.clear()
                listener.pgconn.consume_input()
                while listener.pgconn.notifies():
                    self.is_notified = True
                    self.wake()
        finally:
            loop.remove_reader(socket)

    async def set_clock(self, clock: DatabaseClock) -> None:
        while True:
            await asyncio.sleep(REPEAT_INTERVAL)
            await self.run_in_thread(self.claim_executor, lambda: clock.set(sql.get_database_time()))

    async def report_regularly(self, clock: DatabaseClock) -> None:
        while True:
            await self.report_event.wait()
            await asyncio.sleep(1)
            await self.report(clock)
            if not self.in_flight:
                self.report_event.clear()

    async def report(self, clock: DatabaseClock) -> None:
        """Writes the results since the last report, if there are any or if deliveries are in flight."""
        # The last report waits for a report that is in progress: the end of the worker would cancel that one.
        async with self.report_lock:
            if self.counts or self.in_flight:
                counts, self.counts = self.counts, Counter()
                backlog = await self.run_in_thread(self.other_executor, leases.get_backlog)
                self.write_line(format_report(counts, backlog, clock.now()))


def format_report(counts: Counter[str], backlog: Backlog, now: datetime) -> str:
    results = ", ".join(f"{name} {counts[name]:,}" for name in ("sent", "failed", "dead"))
    oldest = f"{max(0, (now - backlog.oldest).total_seconds()):.0f} s" if backlog.oldest else "-"
    suffix = "+" if backlog.waiting == leases.MAX_BACKLOG_COUNT else ""
    return f"{results}, waiting {backlog.waiting:,}{suffix}, oldest {oldest}"


def clean(stop: Event) -> None:
    disable_ended()
    delete_expired_if_due(stop.is_set)


def close_connection() -> None:
    """Closes the connection of the thread that runs it."""
    connection.close()
