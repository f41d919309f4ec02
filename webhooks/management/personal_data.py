"""What webhooks know of a person; one of the modules of PERSONAL_DATA."""

from collections import Counter
from collections.abc import Iterator
from typing import Any

from oauth.management.personal_data import list_entries, remove_titles
from oauth.management.users import Person
from webhooks.models import Delivery, Endpoint, EndpointSecret

ENDPOINT_COLUMNS = (
    "id", "url", "kinds", "form", "description", "in_flight_limit", "state", "reason", "created_at", "expires_at",
)  # fmt: skip
# The name .invalid never resolves (RFC 6761).
ANONYMOUS_URL = "https://forgotten.invalid/"


def export_data(person: Person) -> Iterator[tuple[str, Any]]:
    yield "webhooks", list(Endpoint.objects.filter(owner=person.user_id).order_by("pk").values(*ENDPOINT_COLUMNS))


def forget(person: Person) -> Counter[str]:
    """Deletes the endpoints as their owner does: the rows stay, without an address, until `clear_expired`."""
    endpoints = Endpoint.objects.filter(owner=person.user_id)
    pks = list(endpoints.values_list("pk", flat=True))
    entries = remove_titles(list_entries(endpoints))
    entries += remove_titles(list_entries(Delivery.objects.filter(endpoint__in=pks)))
    EndpointSecret.objects.filter(endpoint__in=pks).delete()
    deleted = {"state": Endpoint.State.DELETED, "url": ANONYMOUS_URL, "description": "", "reason": ""}
    count = endpoints.update(owner=None, **deleted)
    return Counter({"webhooks": count, "titles in the log of the admin": entries})
