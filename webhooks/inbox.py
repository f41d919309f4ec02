"""What other services send is kept once, and worked off later by one worker. All times are the database's."""

import json
import logging
from collections import defaultdict
from collections.abc import Callable, Iterator
from datetime import datetime
from typing import Any

from django.db import IntegrityError, transaction
from django.db.models import QuerySet
from django.db.models.functions import Now

from library_site.http.refusals import Refusal
from webhooks.encryption import DecryptionError, decrypt, encrypt, generate_secret
from webhooks.models import Received, Source, SourceSecret
from webhooks.outbox import notify_workers
from webhooks.queue import (
    POISONED_REASON,
    finish_rows,
    get_retry_delay,
    is_last_attempt,
    is_poisoned,
    keep_leased,
    lease_rows,
    retry_row,
)

log = logging.getLogger(__name__)

MAX_ERROR_LENGTH = 500

Handler = Callable[[Received, dict[str, Any], datetime], None]
HANDLERS_BY_KIND: dict[str, list[Handler]] = defaultdict(list)


class UnknownSource(Refusal):
    """No source of this name may send events here now."""

    status = 404
    message = "Not Found"


def register_handler(*kinds: str) -> Callable[[Handler], Handler]:
    """Registers a function that carries out events of these kinds, in a transaction together with their done mark.

    It gets the event, its body and the time, and is called again after it raised.
    """

    def register(handler: Handler) -> Handler:
        for kind in kinds:
            HANDLERS_BY_KIND[kind].append(handler)
        return handler

    return register


def find_source(name: str) -> Source:
    """Raises UnknownSource."""
    found = Source.objects.filter(name=name, enabled=True).first()
    if found is None:
        raise UnknownSource
    return found


def iter_secrets(of: Source) -> Iterator[str]:
    """All that it may sign with."""
    for secret in SourceSecret.objects.filter(source=of):
        try:
            yield decrypt(secret.sealed)
        except DecryptionError:
            log.error("A secret of the source %s cannot be read: give it a new one.", of)  # noqa: TRY400  # says it all


def add_secret(of: Source, secret: str | None, now: datetime) -> str:
    """Another that it may sign with: this one, or a new one."""
    text = secret or generate_secret()
    SourceSecret.objects.create(source=of, sealed=encrypt(text), created_at=now)
    return text


def store_event(source: Source, event_id: str, kind: str, body: bytes) -> None:
    """Keeps an event, if it is none that was sent before. Raises UnknownSource.

    `carry_out` reads `body` as a JSON object.
    """
    event = Received(source=source, event_id=event_id, kind=kind, body=body)
    try:
        with transaction.atomic():
            Received.objects.bulk_create([event], ignore_conflicts=True)
            notify_workers()
    except IntegrityError as error:
        # Conflicts are passed over: what is left is a source that was deleted meanwhile.
        raise UnknownSource from error


def process_due(limit: int, chance: Callable[[], float]) -> int:
    """Works off what is due, but no more than so many; answers how many there were.

    `chance` gives numbers from 0 to 1, which spread what is tried again.
    """
    for done in range(limit):
        if not has_due():
            return done
        # One at a time: the leases of others could end while a handler is slow.
        for received in claim_due(1):
            process_event(received, chance())
    return limit


def has_due() -> bool:
    """Asked without a transaction, which on SQLite would hold up writers."""
    return Received.objects.filter(next_at__lte=Now()).exists()


@transaction.atomic(durable=True)
def claim_due(limit: int) -> list[Received]:
    """Leases events that are due."""
    due = Received.objects.filter(next_at__lte=Now()).order_by("next_at", "pk").select_for_update(skip_locked=True)
    lease, rows = lease_rows(Received, due.values_list("pk", flat=True)[:limit], ["id", "attempted", "claimed"])
    poisoned = [pk for pk, attempted, claimed in rows if is_poisoned(attempted, claimed)]
    finish_rows(Received, poisoned, Received.State.DEAD, attempts=0, error=POISONED_REASON)
    return list(Received.objects.filter(lease=lease).select_related("source").order_by("pk"))


def process_event(received: Received, chance: float) -> None:
    """Has a claimed event carried out and marks it done, both or neither, as long as it is ours."""
    try:
        with transaction.atomic(durable=True):
            run_handlers(received)
    # Whatever a handler raises is for people to read: others wait behind this event.
    except Exception as error:
        log.warning("Event %s of kind %s failed.", received.pk, received.kind, exc_info=error)
        schedule_retry(received, format_error(error), chance)


def run_handlers(received: Received) -> None:
    """The lock keeps other workers out to the end, also of a lease that is over."""
    if not is_leased(received):
        return
    [now] = Received.objects.filter(pk=received.pk).annotate(now=Now()).values_list("now", flat=True)
    for handle in HANDLERS_BY_KIND.get(received.kind, ()):
        handle(received, json.loads(bytes(received.body)), now)
    finish_rows(Received, [received.pk], Received.State.DONE, error="")


@transaction.atomic
def schedule_retry(received: Received, error: str, chance: float) -> None:
    """Charges an attempt; after the last, the event is dead."""
    if not is_leased(received):
        return
    attempt = received.attempted + 1
    if is_last_attempt(attempt):
        finish_rows(Received, [received.pk], Received.State.DEAD, error=error)
    else:
        retry_row(Received, received.pk, get_retry_delay(attempt, chance), error=error)


def requeue_dead(events: QuerySet[Received]) -> int:
    """Has the dead among them worked off again, as if they had just come; tells how many. Needs a transaction."""
    notify_workers()
    dead = events.filter(state=Received.State.DEAD)
    return dead.update(state=Received.State.WAITING, next_at=Now(), attempted=0, claimed=0, finished_at=None)


def is_leased(received: Received) -> bool:
    """Whether the worker that leased the event still has it; then no other leases it before the transaction ends."""
    return bool(received.lease and keep_leased(Received, {received.pk: received.lease}, lock=True))


def format_error(error: Exception) -> str:
    """What every database can keep."""
    text = f"{type(error).__name__}: {error}".encode(errors="replace").decode()
    return text.replace("\0", "?")[:MAX_ERROR_LENGTH]
