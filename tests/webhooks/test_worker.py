"""`manage.py deliver_webhooks` from the change of a book to its receiver."""

import json
from typing import Any

import pytest
from django.core import mail
from django.core.management import CommandError, call_command
from django.db import transaction
from django.utils import timezone

from books import changes
from tests.support.books import new_book
from tests.support.endpoints import SECRET, endpoint, event, listener
from tests.support.receivers import answering, receiving
from webhooks.models import Attempt, Delivery, Endpoint
from webhooks.signing import verify

pytestmark = pytest.mark.usefixtures("transactional_db", "allow_private")


def deliver(**options: Any) -> None:
    call_command("deliver_webhooks", once=True, **options)


def test_a_change_reaches_its_listener(capsys: pytest.CaptureFixture[str]) -> None:
    with receiving(answering(200, b"ok")) as receiver:
        endpoint(url=receiver.url)
        with transaction.atomic():
            book = changes.add_book(new_book(), now=timezone.now())
        deliver()
    [request] = receiver.sent
    body = json.loads(request.body)
    verify(request.headers, request.body, [SECRET], now=timezone.now().timestamp(), form="B")
    assert (body["event"], body["data"]["book"]["id"]) == ("book.created", book.pk)
    assert Delivery.objects.values_list("state", "attempted", "claimed").get() == ("delivered", 1, 1)
    assert Attempt.objects.values_list("status", "error").get() == (200, "")
    assert capsys.readouterr().out == "sent 1, failed 0, dead 0, waiting 0, oldest -\n"


def test_each_of_many_is_delivered_once() -> None:
    owner = listener()
    with receiving(answering(200)) as receiver:
        for number in range(3):
            endpoint(owner, url=f"{receiver.url}/{number}", in_flight_limit=7)
        for number in range(40):
            event(number)
        deliver(concurrency=10)
    assert len({(request.path, request.body) for request in receiver.sent}) == len(receiver.sent) == 120
    assert set(Delivery.objects.values_list("state", "attempted")) == {("delivered", 1)}


def test_what_fails_waits_and_holds_nobody_up() -> None:
    owner = listener()
    with receiving(answering(500)) as broken, receiving(answering(200)) as well:
        endpoint(owner, url=broken.url)
        endpoint(owner, url=well.url)
        event()
        deliver()
    assert (len(broken.sent), len(well.sent)) == (1, 1)
    assert sorted(Delivery.objects.values_list("state", "attempted")) == [("delivered", 1), ("waiting", 1)]


def test_the_owner_is_told_of_a_disabled_endpoint() -> None:
    owner = listener()
    owner.email = "listener@library.example"
    owner.save()
    with receiving(answering(500)) as receiver:
        endpoint(owner, url=receiver.url, dead_in_a_row=9)
        event()
        Delivery.objects.update(attempted=4)
        deliver()
    assert Endpoint.objects.get().state == "disabled"
    [message] = mail.outbox
    assert (message.to, message.subject) == (["listener@library.example"], "Your webhook is disabled")
    assert receiver.url in message.body


def test_a_concurrency_that_makes_no_sense_is_refused() -> None:
    with pytest.raises(CommandError):
        deliver(concurrency=0)
