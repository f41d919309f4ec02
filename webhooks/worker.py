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

from webhooks import delivery, inbox
from webhooks.attempts import Outcome, record, result
from webhooks.delivery import Backlog, Claimed
from webhooks.models import Endpoint
from webhooks.notices import tell_disabled
from webhooks.outbox import CHANNEL, HINT_EVERY
from webhooks.sending import Clock, Sender, send, sender

log = logging.getLogger(__name__)
Answer = TypeVar("Answer")

# Seconds between looks while nothing is due: where hints come, and on SQLite, which gives none.
POLL = {"postgresql": 0.5, "sqlite": 0.1}
# Where something was due, more may come without a hint for a while.
EAGER, EAGER_FOR = 0.02, 2 * HINT_EVERY
# Outcomes are recorded together: what comes within so many seconds, unless enough is here, and no more than so many.
GATHERED_FOR, ENOUGH, RECORDED = 0.01, 50, 500
# Seconds until a database that is away is asked again.
AGAIN = 1.0
HANDLED = 20
# What the database says that is away, or takes no writes, as a replica that is about to be promoted.
AWAY = (InterfaceError, InternalError, OperationalError)
# Seconds between looks at the database's clock.
CLOCK_SET = 60
# Of Django's parameters for a connection, those that are its own or psycopg's.
NOT_LIBPQS = {"context", "cursor_factory", "prepare_threshold"}


class Worker:
    """Delivers up to `concurrency` at once; `say` hears a line a second while it does."""

    def __init__(self, concurrency: int, say: Callable[[str], None]) -> None:
        self.concurrency = concurrency
        self.say = say
        # Each thread has a connection of its own: what is slow in one holds up nothing else.
        self.claiming, self.recording, self.receiving = (ThreadPoolExecutor(1) for _ in range(3))
        self.stopping = False
        self.bells = {self.claiming: asyncio.Event(), self.receiving: asyncio.Event()}
        self.eager_until = 0.0
        # By endpoint, what is claimed and not recorded yet.
        self.open: Counter[int] = Counter()
        self.outcomes: asyncio.Queue[Outcome] = asyncio.Queue()
        self.counts: Counter[str] = Counter()

    async def run(self, once: bool) -> None:
        """`once`: until nothing is due any more."""
        for number in (signal.SIGTERM, signal.SIGINT):
            asyncio.get_running_loop().add_signal_handler(number, self.stop)
        clock = Clock(await self.ask(self.claiming, delivery.database_now))
        async with sender(self.concurrency, clock.now) as sends, asyncio.TaskGroup() as group:
            endless = (self.record(group), self.listen(), self.report(clock), self.keep_time(clock))
            beside = [group.create_task(one) for one in endless]
            await asyncio.gather(self.deliver(sends, group, once), self.work_off(once))
            await self.tell(clock)
            for task in beside:
                task.cancel()
        for who in (self.claiming, self.recording, self.receiving):
            who.submit(disconnect)
            who.shutdown()

    def stop(self) -> None:
        self.stopping = True
        self.wake()

    def wake(self) -> None:
        self.eager_until = time.monotonic() + EAGER_FOR
        for bell in self.bells.values():
            bell.set()

    async def deliver(self, sender: Sender, group: asyncio.TaskGroup, once: bool) -> None:
        """Comes back when all that was claimed is recorded."""
        while not self.stopping:
            idle = not self.open
            found = await self.claim(group)
            for one in found:
                self.open[one.endpoint_id] += 1
                group.create_task(self.send(sender, one))
            if once and idle and not found:
                return
            if len(found) < delivery.most_at_once(self.concurrency) or not self.has_room():
                await self.pause(self.claiming, found=bool(found))
        while self.open:
            await self.pause(self.claiming, found=True)

    async def claim(self, group: asyncio.TaskGroup) -> list[Claimed]:
        if self.open.total() >= self.concurrency:
            return []
        claim = await self.ask(self.claiming, partial(delivery.claim, self.concurrency, dict(self.open)))
        self.tell_owners(claim.disabled, group)
        return claim.deliveries

    async def send(self, sender: Sender, claimed: Claimed) -> None:
        self.outcomes.put_nowait(await send(sender, claimed))

    async def record(self, group: asyncio.TaskGroup) -> None:
        while True:
            batch = [await self.outcomes.get()]
            if self.outcomes.qsize() < ENOUGH:
                await asyncio.sleep(GATHERED_FOR)
            while len(batch) < RECORDED and not self.outcomes.empty():
                batch.append(self.outcomes.get_nowait())
            self.tell_owners(await self.ask(self.recording, partial(record, batch, random)), group)
            for outcome in batch:
                if not outcome.delivered:
                    log.info("Delivery %s failed: %s", outcome.claimed.pk, outcome.status or outcome.error)
            self.open -= Counter(outcome.claimed.endpoint_id for outcome in batch)
            self.counts.update(map(result, batch))
            if self.has_room():
                self.bells[self.claiming].set()

    def has_room(self) -> bool:
        """For as many as are claimed at once: a claim costs as much for one."""
        return self.concurrency - self.open.total() >= delivery.most_at_once(self.concurrency)

    def tell_owners(self, disabled: list[Endpoint], group: asyncio.TaskGroup) -> None:
        for endpoint in disabled:
            group.create_task(self.ask(self.receiving, partial(tell_disabled, endpoint)))

    async def work_off(self, once: bool) -> None:
        while not self.stopping:
            found = await self.ask(self.receiving, partial(inbox.drain, HANDLED, random))
            if once and not found:
                return
            await self.pause(self.receiving, found=bool(found))

    async def pause(self, who: ThreadPoolExecutor, found: bool) -> None:
        """Until the bell rings, or it is time to look again."""
        if found:
            self.eager_until = time.monotonic() + EAGER_FOR
        eager = time.monotonic() < self.eager_until and self.has_room()
        with suppress(TimeoutError):
            await asyncio.wait_for(self.bells[who].wait(), EAGER if eager else POLL[connection.vendor])
        self.bells[who].clear()

    async def ask(self, who: ThreadPoolExecutor, question: Callable[[], Answer]) -> Answer:
        """The database, until it answers or all ends: what is not recorded then is sent again."""
        while True:
            try:
                return await asyncio.get_running_loop().run_in_executor(who, reconnecting, question)
            except AWAY as error:
                if self.stopping:
                    raise
                log.warning("The database did not answer: %s", type(error).__name__)
                await asyncio.sleep(AGAIN)

    async def listen(self) -> None:
        """Hears the hints of `webhooks.outbox`."""
        if connection.vendor != "postgresql":
            return
        while True:
            with suppress(psycopg.OperationalError):
                parameters = connection.get_connection_params()
                known = {name: value for name, value in parameters.items() if name not in NOT_LIBPQS}
                async with await psycopg.AsyncConnection.connect(**known, autocommit=True) as hints:
                    await hints.execute(f"LISTEN {CHANNEL}")
                    async for _ in hints.notifies():
                        self.wake()
            await asyncio.sleep(AGAIN)

    async def keep_time(self, clock: Clock) -> None:
        while True:
            await asyncio.sleep(CLOCK_SET)
            clock.set(await self.ask(self.claiming, delivery.database_now))

    async def report(self, clock: Clock) -> None:
        while True:
            await asyncio.sleep(1)
            await self.tell(clock)

    async def tell(self, clock: Clock) -> None:
        """What was done since it was asked last, if anything was, or is under way."""
        if self.counts or self.open:
            counts, self.counts = self.counts, Counter()
            found = await self.ask(self.receiving, delivery.backlog)
            self.say(line(counts, found, clock.now()))


def line(counts: Counter[str], backlog: Backlog, now: datetime) -> str:
    told = ", ".join(f"{name} {counts[name]:,}" for name in ("sent", "failed", "dead"))
    oldest = f"{max(0, (now - backlog.oldest).total_seconds()):.0f} s" if backlog.oldest else "-"
    more = "+" if backlog.waiting == delivery.COUNTED else ""
    return f"{told}, waiting {backlog.waiting:,}{more}, oldest {oldest}"


def disconnect() -> None:
    """Of the thread that runs it."""
    connection.close()


def reconnecting(question: Callable[[], Answer]) -> Answer:
    """A connection that failed is not used again."""
    try:
        return question()
    except AWAY:
        connection.close()
        raise
