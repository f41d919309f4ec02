"""A worker is killed while it sends, and another one goes on."""

import os
import signal
from collections import Counter
from contextlib import suppress
from pathlib import Path
from threading import Event
from typing import Any

import pytest

from tests.support.forked_commands import ForkedProcess
from tests.support.receivers import respond_with, start_receiver
from tests.support.server import copy_seeded_database, run_in_shell
from tests.support.waiting import PROCESS_TIMEOUT, wait_until

PUBLISH = """
from tests.support.endpoints import create_endpoint, publish_event
create_endpoint(url={!r})
for number in range(3):
    publish_event(number)
"""
GO_ON = """
from django.core.management import call_command
from django.db.models import F
from webhooks.models import Delivery
# As if the leases were over.
Delivery.objects.update(next_at=F("created_at"))
call_command("deliver_webhooks", once=True)
print(set(Delivery.objects.values_list("state", "attempted", "claimed")))
"""


def test_no_event_is_lost_when_a_worker_is_killed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WEBHOOKS_ALLOW_PRIVATE", "true")
    is_killed = Event()

    def respond_later(handler: Any) -> None:
        is_killed.wait(PROCESS_TIMEOUT)
        with suppress(OSError):
            respond_with(200)(handler)
        handler.close_connection = True

    with copy_seeded_database(tmp_path) as url, start_receiver(respond_later) as receiver:
        run_in_shell(url, PUBLISH.format(receiver.url))
        with Path(os.devnull).open("w") as nothing:
            environment = os.environ | {"DATABASE_URL": url}
            worker = ForkedProcess(environment, "deliver_webhooks", output=nothing.fileno(), errors=nothing.fileno())
        wait_until(lambda: len(receiver.requests) == 3)
        worker.send_signal(signal.SIGKILL)
        worker.wait(PROCESS_TIMEOUT)
        is_killed.set()
        assert run_in_shell(url, GO_ON).splitlines()[-1] == "{('delivered', 1, 2)}"
    # Each event came to both workers.
    assert sorted(Counter(request.body for request in receiver.requests).values()) == [2, 2, 2]
