"""The worker: it sends deliveries and mails, processes received events and deletes what has expired."""

import asyncio
import logging
import time
from collections import Counter, deque
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import AsyncExitStack
from functools import partial
from random import random
from threading import Event
from typing import TypeVar

import uvloop
from django.db import connections
from django.utils import timezone

from library_site.db.sql import get_database_time
from library_site.jobs.worker import Queue, call_reconnecting, run_queues
from oauth.accounts import mails
from webhooks import inbox
from webhooks.delivery import leases
from webhooks.delivery.attempts import AttemptResult, record_results
from webhooks.delivery.leases import LeasedDelivery
from webhooks.delivery.sending import DatabaseClock, open_sender, send_delivery
from webhooks.endpoints import disable_expired, mail_owner
from webhooks.expiry import delete_expired_if_due
from webhooks.models import Endpoint

log = logging.getLogger(__name__)
Result = TypeVar("Result")

# Seconds between searches for deliveries.
POLL_INTERVAL = 0.1
# Results are recorded in batches. A batch waits this many seconds for more results.
BATCH_WAIT, MAX_BATCH = 0.01, 500
INBOX_INTERVAL, MAIL_INTERVAL, EXPIRY_POLL_INTERVAL, REPORT_INTERVAL = 0.5, 3.0, 60, 1


def run(concurrency: int, write_line: Callable[[str], None], *, once: bool) -> None:
    """Has up to `concurrency` deliveries in flight. `write_line` gets their results, at most once a second."""
    log.info("The worker has started.")
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        deliveries = DeliveryQueue(runner, concurrency, write_line)
        queues = [
            Queue(deliveries.process, POLL_INTERVAL),
            Queue(lambda _: inbox.process_due(random), INBOX_INTERVAL),
            Queue(deliveries.send_mails, MAIL_INTERVAL),
            Queue(end_expired, EXPIRY_POLL_INTERVAL),
        ]
        try:
            run_queues(queues, once)
        finally:
            deliveries.finish()
    log.info("The worker has stopped.")


class DeliveryQueue:
    """The deliveries. Tasks of an event loop send them, and go on between two calls of `process`."""

    def __init__(self, runner: asyncio.Runner, concurrency: int, write_line: Callable[[str], None]) -> None:
        self.runner, self.concurrency, self.write_line = runner, concurrency, write_line
        # It has one thread with its own connection: a slow statement does not stop the sending.
        self.executor = ThreadPoolExecutor(1)
        self.clock = DatabaseClock(timezone.now())
        self.stack = AsyncExitStack()
        self.sender = runner.run(self.stack.enter_async_context(open_sender(self.clock.now)))
        # The deliveries that are claimed and not recorded yet, with their endpoints.
        self.tasks: dict[asyncio.Task[AttemptResult], int] = {}
        self.counts: Counter[str] = Counter()
        self.reported_at = time.monotonic()
        # Those whose owners get a mail.
        self.disabled: deque[Endpoint] = deque()

    def process(self, stop: Event) -> bool:
        return self.runner.run(self.advance())

    def finish(self) -> None:
        """Returns when the results of all claimed deliveries are recorded."""
        try:
            while self.tasks:
                self.runner.run(self.advance(claims=False))
            if self.counts:
                self.report()
            self.mail_owners()
        finally:
            self.executor.submit(connections.close_all)
            self.executor.shutdown()
            self.runner.run(self.stack.aclose())

    async def advance(self, *, claims: bool = True) -> bool:
        """Claims what is due, and records what was sent. Returns whether there was any."""
        # A claim of one delivery would cost as much as a full one.
        if claims and self.concurrency - len(self.tasks) >= leases.get_claim_limit(self.concurrency):
            for delivery in await self.claim():
                self.tasks[asyncio.create_task(send_delivery(self.sender, delivery))] = delivery.endpoint_id
        had_work = bool(self.tasks)
        if had_work:
            await asyncio.wait(self.tasks, timeout=POLL_INTERVAL, return_when=asyncio.FIRST_COMPLETED)
            await asyncio.sleep(BATCH_WAIT)
            await self.record([task for task in self.tasks if task.done()][:MAX_BATCH])
        if self.counts and time.monotonic() - self.reported_at >= REPORT_INTERVAL:
            self.report()
        return had_work

    async def claim(self) -> list[LeasedDelivery]:
        in_flight = Counter(self.tasks.values())
        claim = await self.run_in_thread(partial(leases.claim_deliveries, self.concurrency, in_flight))
        self.disabled += claim.disabled_endpoints
        if claim.deliveries:
            self.clock.set(await self.run_in_thread(get_database_time))
        return claim.deliveries

    async def record(self, tasks: list[asyncio.Task[AttemptResult]]) -> None:
        results = [task.result() for task in tasks]
        if not results:
            return
        self.disabled += await self.run_in_thread(partial(record_results, results, random))
        for task, result in zip(tasks, results, strict=True):
            del self.tasks[task]
            self.counts[result.outcome] += 1
            if not result.is_delivered:
                log.info("Delivery %s failed: %s", result.delivery.pk, result.status or result.error)

    async def run_in_thread(self, function: Callable[[], Result]) -> Result:
        """Raises CONNECTION_ERRORS. What was sent is then recorded when the database answers again."""
        return await asyncio.get_running_loop().run_in_executor(self.executor, call_reconnecting, function)

    def send_mails(self, stop: Event) -> int:
        self.mail_owners()
        return mails.send_due(timezone.now())

    def mail_owners(self) -> None:
        while self.disabled:
            mail_owner(self.disabled[0])
            self.disabled.popleft()

    def report(self) -> None:
        """Writes the results since the last report."""
        self.write_line(", ".join(f"{name} {self.counts[name]:,}" for name in ("sent", "failed", "dead")))
        self.counts, self.reported_at = Counter(), time.monotonic()


def end_expired(stop: Event) -> None:
    disable_expired()
    delete_expired_if_due(stop)
