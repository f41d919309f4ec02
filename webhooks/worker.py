"""The loop that delivers, and works off what was received, until it is told to stop."""

import asyncio
import logging
import signal
import time
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from random import random
from typing import TypeVar

import aiohttp
import psycopg
from django.db import InterfaceError, InternalError, OperationalError, connection

from webhooks import delivery, inbox, sending
from webhooks.delivery import Claimed, Outcome
from webhooks.notices import tell_disabled
from webhooks.outbox import CHANNEL, HINT_EVERY

log = logging.getLogger(__name__)
Answer = TypeVar("Answer")

# Seconds between looks while nothing is due: where hints come, and on SQLite, which gives none.
POLL = {"postgresql": 0.5, "sqlite": 0.1}
# Where something was due, more may come without a hint for a while.
EAGER, EAGER_FOR = 0.02, 2 * HINT_EVERY
# Outcomes are recorded together: what comes within so many seconds, but no more than so many.
GATHERED_FOR, RECORDED = 0.01, 500
# Seconds until a database that is away is asked again.
AGAIN = 1.0
HANDLED = 20
# What the database says that is away, or takes no writes, as a replica that is about to be promoted.
AWAY = (InterfaceError, InternalError, OperationalError)
# Seconds between looks at the database's clock.
CLOCK_SET = 60
# Of Django's parameters for a connection, those that are psycopg's alone.
OURS = {"context", "cursor_factory", "prepare_threshold"}


class Worker:
    """Delivers up to `concurrency` at once; `say` hears a line a second while it does."""

    def __init__(self, concurrency: int, say: Callable[[str], None]) -> None:
        self.concurrency = concurrency
        self.say = say
        # Each thread has a connection of its own: a handler that is slow holds up no delivery.
        self.deliveries, self.received = ThreadPoolExecutor(1), ThreadPoolExecutor(1)
        self.stopping = False
        self.bells = {self.deliveries: asyncio.Event(), self.received: asyncio.Event()}
        self.eager_until = 0.0
        self.flying: set[asyncio.Task[None]] = set()
        # Claimed, and not recorded yet.
        self.open = 0
        self.outcomes: asyncio.Queue[Outcome] = asyncio.Queue()
        self.counts: Counter[str] = Counter()

    async def run(self, once: bool) -> None:
        """`once`: until nothing is due any more."""
        for number in (signal.SIGTERM, signal.SIGINT):
            asyncio.get_running_loop().add_signal_handler(number, self.stop)
        clock = sending.Clock(await self.ask(self.deliveries, delivery.database_now))
        async with sending.session(self.concurrency) as client, asyncio.TaskGroup() as group:
            endless = (self.record(group), self.listen(), self.report(), self.keep_time(clock))
            beside = [group.create_task(one) for one in endless]
            await asyncio.gather(self.deliver(client, clock, once), self.work_off(once))
            for task in beside:
                task.cancel()
        for who in self.bells:
            who.submit(disconnect)
            who.shutdown()

    def stop(self) -> None:
        self.stopping = True
        self.wake()

    def wake(self) -> None:
        self.eager_until = time.monotonic() + EAGER_FOR
        for bell in self.bells.values():
            bell.set()

    async def deliver(self, client: aiohttp.ClientSession, clock: sending.Clock, once: bool) -> None:
        """Comes back when all that was claimed is recorded."""
        while not self.stopping:
            room = self.concurrency - self.open
            claimed = await self.ask(self.deliveries, partial(delivery.claim, room)) if room else []
            self.open += len(claimed)
            for one in claimed:
                task = asyncio.create_task(self.send(client, clock, one))
                self.flying.add(task)
                task.add_done_callback(self.flying.discard)
            if once and not self.open:
                return
            await self.pause(self.deliveries, found=bool(claimed))
        while self.open:
            await self.pause(self.deliveries, found=True)

    async def send(self, client: aiohttp.ClientSession, clock: sending.Clock, claimed: Claimed) -> None:
        await self.outcomes.put(await sending.send(client, claimed, clock.now))

    async def record(self, group: asyncio.TaskGroup) -> None:
        while True:
            batch = [await self.outcomes.get()]
            await asyncio.sleep(GATHERED_FOR)
            while len(batch) < RECORDED and not self.outcomes.empty():
                batch.append(self.outcomes.get_nowait())
            chances = [random() for _ in batch]  # noqa: S311  # jitter
            for endpoint in await self.ask(self.deliveries, partial(delivery.record, batch, chances)):
                group.create_task(self.ask(self.received, partial(tell_disabled, endpoint)))
            for outcome in batch:
                if not outcome.delivered:
                    log.info("Delivery %s failed: %s", outcome.claimed.pk, outcome.status or outcome.error)
            self.open -= len(batch)
            self.counts.update(map(delivery.result, batch))
            self.bells[self.deliveries].set()

    async def work_off(self, once: bool) -> None:
        while not self.stopping:
            found = await self.ask(self.received, partial(inbox.drain, HANDLED, random))
            if once and not found:
                return
            await self.pause(self.received, found=bool(found))

    async def pause(self, who: ThreadPoolExecutor, found: bool) -> None:
        """Until the bell rings, or it is time to look again."""
        if found:
            self.eager_until = time.monotonic() + EAGER_FOR
        eager = time.monotonic() < self.eager_until
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
        while connection.vendor == "postgresql":
            with suppress(psycopg.OperationalError):
                parameters = connection.get_connection_params()
                known = {name: value for name, value in parameters.items() if name not in OURS}
                async with await psycopg.AsyncConnection.connect(**known, autocommit=True) as hints:
                    await hints.execute(f"LISTEN {CHANNEL}")
                    async for _ in hints.notifies():
                        self.wake()
            await asyncio.sleep(AGAIN)

    async def keep_time(self, clock: sending.Clock) -> None:
        while True:
            await asyncio.sleep(CLOCK_SET)
            clock.set(await self.ask(self.deliveries, delivery.database_now))

    async def report(self) -> None:
        while True:
            await asyncio.sleep(1)
            if self.counts:
                counts, self.counts = self.counts, Counter()
                found = await self.ask(self.received, delivery.backlog)
                self.say(line(counts, found, time.time()))


def line(counts: Counter[str], backlog: delivery.Backlog, now: float) -> str:
    """Of the last second."""
    told = ", ".join(f"{name} {counts[name]:,}" for name in ("sent", "failed", "dead"))
    oldest = f"{now - backlog.oldest.timestamp():.0f} s" if backlog.oldest else "-"
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
