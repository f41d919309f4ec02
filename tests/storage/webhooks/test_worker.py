"""`manage.py deliver_webhooks`, from the change of a book to the request that its receiver gets."""

import json
import signal
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from threading import Event
from typing import Any, NoReturn

import pytest
from django.contrib.auth.models import User
from django.core import mail
from django.core.management import call_command
from django.db import OperationalError, connection, transaction
from django.db.models.functions import Now
from django.utils import timezone

from books.writing import changes
from oauth.accounts import mails
from oauth.models import Profile
from tests.support.books import ACTOR, build_book
from tests.support.endpoints import SECRET, create_endpoint, create_owner, publish_event
from tests.support.receivers import respond_with, start_receiver
from tests.support.waiting import wait_until
from webhooks import endpoints, inbox, worker
from webhooks.delivery.attempts import record_results
from webhooks.models import Attempt, Delivery, Endpoint
from webhooks.signing import verify
from webhooks.worker import DeliveryQueue

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
    assert capsys.readouterr().out == "sent 1, failed 0, dead 0\n"


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
    """With it a worker would have six."""
    connection.ensure_connection()
    run_worker()
    assert connection.connection is None


def test_a_worker_finds_what_becomes_due_until_it_is_stopped(monkeypatch: pytest.MonkeyPatch) -> None:
    """It reports what it has sent before it stops."""
    lines: list[str] = []
    has_looked = Event()
    process = DeliveryQueue.process

    def process_and_tell(queue: DeliveryQueue, stop: Event) -> bool:
        was_due = process(queue, stop)
        has_looked.set()
        return was_due

    monkeypatch.setattr(DeliveryQueue, "process", process_and_tell)
    monkeypatch.setattr(worker, "REPORT_INTERVAL", 3600)
    with start_receiver(respond_with(200)) as receiver:
        create_endpoint(url=receiver.url)
        publish_event()
        Delivery.objects.update(next_at=timezone.now() + timedelta(days=1))

        def make_due_and_stop() -> None:
            assert has_looked.wait(30)
            Delivery.objects.update(next_at=Now())
            connection.close()
            wait_until(lambda: bool(receiver.requests))
            signal.raise_signal(signal.SIGTERM)

        with ThreadPoolExecutor(1) as executor:
            made_due = executor.submit(make_due_and_stop)
            worker.run(10, lines.append, once=False)
    assert made_due.result() is None
    assert lines == ["sent 1, failed 0, dead 0"]


def test_a_queue_that_fails_stops_the_worker(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> NoReturn:
        raise ZeroDivisionError

    monkeypatch.setattr(inbox, "process_due", fail)
    with pytest.raises(ZeroDivisionError):
        worker.run(10, print, once=False)


def test_what_was_sent_while_the_database_was_away_is_recorded_and_not_sent_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    failures = [OperationalError("away"), OperationalError("away")]

    def record_later(*arguments: Any) -> list[Endpoint]:
        if failures:
            raise failures.pop()
        return record_results(*arguments)

    monkeypatch.setattr("webhooks.worker.record_results", record_later)
    monkeypatch.setattr("library_site.jobs.worker.RECONNECT_DELAY", 0.01)
    with start_receiver(respond_with(200)) as receiver:
        create_endpoint(url=receiver.url)
        publish_event()
        run_worker()
    assert len(receiver.requests) == 1
    assert Delivery.objects.values_list("state", "attempted", "claimed").get() == ("delivered", 1, 1)
