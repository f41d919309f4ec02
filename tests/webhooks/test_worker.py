"""`manage.py deliver_webhooks`, from the change of a book to the request that its receiver gets."""

import asyncio
import json
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.core import mail
from django.core.management import CommandError, call_command
from django.db import transaction
from django.utils import timezone

from books.writing import changes
from oauth.accounts import mails
from oauth.models import Profile
from tests.support.books import ACTOR, build_book
from tests.support.endpoints import SECRET, create_endpoint, create_owner, publish_event
from tests.support.receivers import respond_with, start_receiver
from webhooks import endpoints
from webhooks.delivery.attempts import DISABLED_REASON
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
            book = changes.create_in_transaction(build_book(), ACTOR, now=timezone.now())
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
        worker.inbox_executor.submit(close_connection)

    asyncio.run(report_twice())
    assert lines == ["sent 1, failed 0, dead 0, waiting 0, oldest -"]


def test_each_of_many_is_delivered_once() -> None:
    owner = create_owner()
    with start_receiver(respond_with(200)) as receiver:
        for number in range(3):
            create_endpoint(owner, url=f"{receiver.url}/{number}", in_flight_limit=7)
        for number in range(40):
            publish_event(number)
        run_worker(concurrency=10)
    assert len({(request.path, request.body) for request in receiver.requests}) == len(receiver.requests) == 120
    assert set(Delivery.objects.values_list("state", "attempted")) == {("delivered", 1)}


def test_a_failing_receiver_does_not_delay_others() -> None:
    owner = create_owner()
    with start_receiver(respond_with(500)) as failing_receiver, start_receiver(respond_with(200)) as working_receiver:
        create_endpoint(owner, url=failing_receiver.url)
        create_endpoint(owner, url=working_receiver.url)
        publish_event()
        run_worker()
    assert (len(failing_receiver.requests), len(working_receiver.requests)) == (1, 1)
    assert sorted(Delivery.objects.values_list("state", "attempted")) == [("delivered", 1), ("waiting", 1)]


def test_the_owner_is_emailed_about_a_disabled_endpoint() -> None:
    owner = create_owner()
    owner.email = "listener@library.example"
    owner.save()
    with start_receiver(respond_with(500)) as receiver:
        create_endpoint(owner, url=receiver.url, dead_in_a_row=9)
        publish_event()
        Delivery.objects.update(attempted=4)
        run_worker()
    assert Endpoint.objects.get().state == "disabled"
    [message] = mail.outbox
    assert (message.to, message.subject) == (["listener@library.example"], "Your webhook is disabled")
    assert receiver.url in message.body


def test_the_mail_is_in_the_language_of_the_owner() -> None:
    owner = create_owner()
    owner.email = "listener@library.example"
    owner.save()
    Profile.objects.create(user=owner, language="de")
    endpoints.mail_owner(create_endpoint(owner, reason=DISABLED_REASON))
    [message] = mail.outbox
    assert message.subject == "Ihr Webhook ist ausgeschaltet"
    assert "\n10 Zustellungen nacheinander sind endgültig gescheitert.\n" in message.body


def test_a_person_who_forgot_the_password_gets_a_mail() -> None:
    User.objects.create_user("reader", "listener@library.example", "a password of theirs")
    mails.request_reset("listener@library.example", "127.0.0.1", timezone.now())
    run_worker()
    [message] = mail.outbox
    assert (message.to, message.subject) == (["listener@library.example"], "A new password for the library")


def test_a_concurrency_below_one_is_refused() -> None:
    with pytest.raises(CommandError):
        run_worker(concurrency=0)
