"""`manage.py deliver_webhooks`, from the change of a book to the request that its receiver gets."""

import asyncio
import json
from collections.abc import Awaitable, Callable, Iterator
from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.core import mail
from django.core.management import call_command
from django.db import connection, transaction
from django.db.models.functions import Now
from django.utils import timezone

from books.writing import changes
from library_site.db.sql import execute
from oauth.accounts import mails
from oauth.models import Profile
from tests.support.books import ACTOR, build_book
from tests.support.endpoints import SECRET, create_endpoint, create_owner, publish_event
from tests.support.receivers import Receiver, respond_with, start_receiver
from tests.support.server import is_sqlite
from tests.support.waiting import POLL_INTERVAL
from webhooks import endpoints, worker
from webhooks.delivery.sending import DatabaseClock
from webhooks.models import Attempt, Delivery, Endpoint
from webhooks.signing import verify
from webhooks.worker import Worker, close_connection

pytestmark = pytest.mark.usefixtures("transactional_db", "allow_private")


def run_worker(**options: Any) -> None:
    call_command("deliver_webhooks", once=True, **options)


def test_a_change_reaches_the_receiver(capsys: pytest.CaptureFixture[str]) -> None:
    with start_receiver(respond_with(200, b"ok")) as receiver:
        create_endpoint(url=receiver.url)
        with transaction.atomic():
            book = changes.create_book(build_book(), ACTOR, now=timezone.now())
        run_worker()
    [request] = receiver.requests
    body = json.loads(request.body)
    verify(request.headers, request.body, [SECRET], now=timezone.now().timestamp(), form="B")
    assert (body["event"], body["data"]["book"]["id"]) == ("book.created", book.id)
    assert Delivery.objects.values_list("state", "attempted", "claimed").get() == ("delivered", 1, 1)
    assert Attempt.objects.values_list("status", "error").get() == (200, "")
    # A delivery that takes longer than a second is reported before its end, too.
    *unfinished, last = capsys.readouterr().out.splitlines()
    assert last == "sent 1, failed 0, dead 0, waiting 0, oldest -"
    assert {line.partition(", waiting")[0] for line in unfinished} <= {"sent 0, failed 0, dead 0"}


def test_the_last_report_waits_for_the_one_under_way() -> None:
    lines: list[str] = []

    async def report_twice() -> None:
        worker = Worker(1, lines.append)
        worker.counts["sent"] = 1
        clock = DatabaseClock(timezone.now())
        regular = asyncio.create_task(worker.report(clock))
        await asyncio.sleep(0)
        await worker.report(clock)
        regular.cancel()
        worker.other_executor.submit(close_connection)

    asyncio.run(report_twice())
    assert lines == ["sent 1, failed 0, dead 0, waiting 0, oldest -"]


def test_each_of_many_is_delivered_once() -> None:
    owner = create_owner()
    with start_receiver(respond_with(200)) as receiver:
        for number in range(3):
            create_endpoint(owner, url=f"{receiver.url}/{number}", in_flight_limit=3)
        for number in range(8):
            publish_event(number)
        run_worker(concurrency=5)
    assert len({(request.path, request.body) for request in receiver.requests}) == len(receiver.requests) == 24
    assert set(Delivery.objects.values_list("state", "attempted")) == {("delivered", 1)}


def test_the_owner_is_emailed_about_a_disabled_endpoint_in_their_language() -> None:
    owner = create_owner()
    owner.email = "listener@library.example"
    owner.save()
    with start_receiver(respond_with(500)) as failing_receiver, start_receiver(respond_with(200)) as working_receiver:
        failing = create_endpoint(owner, url=failing_receiver.url, dead_in_a_row=9)
        working = create_endpoint(owner, url=working_receiver.url)
        publish_event()
        Delivery.objects.filter(endpoint=failing).update(attempted=4)
        run_worker()
    assert dict(Endpoint.objects.values_list("pk", "state")) == {failing.pk: "disabled", working.pk: "active"}
    # A failing receiver delays no other.
    assert dict(Delivery.objects.values_list("endpoint", "state")) == {failing.pk: "dead", working.pk: "delivered"}
    [message] = mail.outbox
    assert (message.to, message.subject) == (["listener@library.example"], "Your webhook is disabled")
    assert failing_receiver.url in message.body
    Profile.objects.create(user=owner, language="de")
    failing.refresh_from_db()
    endpoints.mail_owner(failing)
    assert mail.outbox[1].subject == "Ihr Webhook ist ausgeschaltet"
    assert "\n10 Zustellungen nacheinander sind endgültig gescheitert.\n" in mail.outbox[1].body


def test_a_person_who_forgot_the_password_gets_a_mail() -> None:
    User.objects.create_user("reader", "listener@library.example", "a password of theirs")
    mails.request_reset("listener@library.example", "127.0.0.1", timezone.now())
    run_worker()
    [message] = mail.outbox
    assert (message.to, message.subject) == (["listener@library.example"], "A new password for the library")


def test_the_connection_of_the_checks_does_not_stay_open() -> None:
    """With it a worker would have seven."""
    connection.ensure_connection()
    run_worker()
    assert connection.connection is None


def run_worker_beside(act: Callable[[Worker], Awaitable[None]], lines: list[str]) -> None:
    """Runs a worker that writes its reports to `lines`, until `act` has ended."""

    async def run() -> None:
        idle_worker = Worker(10, lines.append)
        async with asyncio.timeout(30):
            running = asyncio.create_task(idle_worker.run(once=False))
            await act(idle_worker)
            idle_worker.stop()
            await running

    asyncio.run(run())


async def wait_until_true(condition: Callable[[], object]) -> None:
    while not condition():
        await asyncio.sleep(POLL_INTERVAL)


async def run_in_database(function: Callable[[], object]) -> None:
    def run_and_close() -> None:
        function()
        close_connection()

    await asyncio.to_thread(run_and_close)


def make_due() -> None:
    """As time does: nobody is notified."""
    Delivery.objects.update(next_at=Now())


def kill_listener() -> None:
    execute("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE query LIKE 'LISTEN %%'")


@pytest.fixture
def later(monkeypatch: pytest.MonkeyPatch) -> Iterator[Receiver]:
    """A receiver whose only delivery is due tomorrow, and workers that poll only where no notifications arrive."""
    monkeypatch.setattr(worker, "POLL_INTERVAL", {"sqlite": POLL_INTERVAL, "postgresql": POLL_INTERVAL})
    monkeypatch.setattr(worker, "NOTIFIED_POLL_INTERVAL", 3600)
    with start_receiver(respond_with(200)) as receiver:
        create_endpoint(url=receiver.url)
        publish_event()
        Delivery.objects.update(next_at=timezone.now() + timedelta(days=1))
        yield receiver


@pytest.mark.parametrize("interval", ["POLL_INTERVAL", "NOTIFIED_POLL_INTERVAL"])
def test_an_idle_worker_finds_what_is_due_and_reports_it(
    later: Receiver, monkeypatch: pytest.MonkeyPatch, interval: str
) -> None:
    lines: list[str] = []
    if interval == "POLL_INTERVAL":
        # As behind a pooler: no notification arrives.
        monkeypatch.setattr(worker, "execute", lambda _: None)
    else:
        monkeypatch.setattr(worker, "NOTIFIED_POLL_INTERVAL", POLL_INTERVAL)

    async def make_due_later(idle_worker: Worker) -> None:
        await wait_until_true(lambda: idle_worker.is_notified or interval == "POLL_INTERVAL" or is_sqlite())
        await run_in_database(make_due)
        await wait_until_true(lambda: later.requests)
        await wait_until_true(lambda: lines)

    run_worker_beside(make_due_later, lines)
    assert "sent 1, failed 0, dead 0, waiting 0, oldest -" in lines


@pytest.mark.skipif(connection.vendor == "sqlite", reason="SQLite has no notifications")
def test_a_notification_wakes_a_worker_that_polls_no_more(later: Receiver) -> None:
    async def publish_later(idle_worker: Worker) -> None:
        for _ in range(2):
            await wait_until_true(lambda: idle_worker.is_notified)
            await run_in_database(publish_event)
            await wait_until_true(lambda: later.requests)
            later.requests.clear()
            # A listener that lost its connection is told nothing, until it is connected again.
            await run_in_database(kill_listener)
            await wait_until_true(lambda: not idle_worker.is_notified)

    run_worker_beside(publish_later, [])
