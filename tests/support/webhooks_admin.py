"""The addresses and forms of the webhooks' admin pages."""

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

from django.test import Client
from django.utils import timezone

from tests.support.admin_pages import read_inputs, read_text
from tests.support.endpoints import claim_deliveries
from webhooks.delivery.attempts import AttemptResult, record_results

ENDPOINTS = "/admin/webhooks/endpoint/"
DELIVERIES = "/admin/webhooks/delivery/"
SOURCES = "/admin/webhooks/source/"
INBOX = "/admin/webhooks/received/"
MOMENT = datetime(2026, 1, 31, 9, 30, tzinfo=UTC)


def build_endpoint_form(**changes: Any) -> dict[str, Any]:
    values = {
        "url": "https://shop.example/hook",
        "kinds": ["book.created", "book.deleted"],
        "form": "B",
        "description": "The shop",
        "in_flight_limit": "20",
    }
    return {**values, **changes}


def build_replay_form(**changes: Any) -> dict[str, Any]:
    yesterday = timezone.now() - timedelta(days=1)
    start = {"after_0": f"{yesterday:%Y-%m-%d}", "after_1": "00:00", "before_0": "", "before_1": ""}
    return {"kinds": ["*"], **start, **changes}


def confirm_replay(client: Client, page: str, form: Mapping[str, Any]) -> Any:
    """Answers the question how many events are to be sent again."""
    return client.post(page, read_inputs(read_text(client.post(page, form))), follow=True)


def attempt_deliveries(status: int | None = 200, **fields: Any) -> None:
    """Records an attempt with this outcome for each delivery that is due, as a worker does."""
    deliveries = claim_deliveries(100)
    record_results([AttemptResult(delivery, MOMENT, 12, status, **fields) for delivery in deliveries], lambda: 0.5)
