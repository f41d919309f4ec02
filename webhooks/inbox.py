"""Stores each event of another service once; one worker processes it later. All times are the database's."""

import json
import logging
from collections import defaultdict
from collections.abc import Callable, Iterator
from datetime import datetime
from typing import Any

from django.db import IntegrityError, transaction
from django.db.models import QuerySet
from django.db.models.functions import Now

from library_site.db.texts import describe_error
from library_site.encryption import DecryptionError
from library_site.http.api_errors import APIError
from library_site.jobs import leases
from library_site.jobs.leases import POISONED_REASON, finish_rows, has_due, lock_leased
from library_site.jobs.retries import EVENT_RETRIES, retry_rows
from webhooks.encryption import decrypt_secret, encrypt_secret, generate_secret
from webhooks.models import Received, Source, SourceSecret
from webhooks.signing import is_usable_secret

log = logging.getLogger(__name__)

Handler = Callable[[Received, dict[str, Any], datetime], None]
HANDLERS_BY_KIND: dict[str, list[Handler]] = defaultdict(list)


class UnknownSource(APIError):
    """No source of this name may send events here now."""

    status_code = 404
    default_detail = "Not Found"


def register_handler(*kinds: str) -> Callable[[Handler], Handler]:
    """Registers a function that processes events of these kinds.

    It runs in the transaction that marks the event as done, and receives the event, its body and the time. If it
    raises an exception, it is called again later.
    """

    def register(handler: Handler) -> Handler:
        for kind in kinds:
            HANDLERS_BY_KIND[kind].append(handler)
        return handler

    return register


def get_source(name: str) -> Source:
    """Returns the enabled source of this name. Raises UnknownSource."""
    source = Source.objects.filter(name=name, enabled=True).first()
    if source is None:
        raise UnknownSource
    return source


def iter_secrets(source: Source) -> Iterator[str]:
    """Yields the secrets that fit the form of the source. A secret that cannot be decrypted is only logged."""
    for row in SourceSecret.objects.filter(source=source):
        try:
            secret = decrypt_secret(row.sealed)
            # Secrets from before form C may not fit it.
            if is_usable_secret(source.form, secret):
                yield secret
        except DecryptionError:
            log.error("A secret of the source %s cannot be read: give it a new one.", source)  # noqa: TRY400  # no traceback needed


def add_source_secret(source: Source, secret: str | None, now: datetime) -> str:
    """Adds a secret that the source may sign with: this one, or a generated one. Returns it."""
    new_secret = secret or generate_secret()
    SourceSecret.objects.create(source=source, sealed=encrypt_secret(new_secret), created_at=now)
    return new_secret


def store_event(source: Source, event_id: str, kind: str, body: bytes) -> None:
    """Stores an event, unless the source has sent it before. Raises UnknownSource.

    `body` is a JSON object, which `run_handlers` decodes.
    """
    event = Received(source=source, event_id=event_id, kind=kind, body=body)
    try:
        with transaction.atomic():
            Received.objects.bulk_create([event], ignore_conflicts=True)
    except IntegrityError as error:
        # Conflicts are ignored, so the source was deleted after it was read.
        raise UnknownSource from error


def process_due(chance: Callable[[], float]) -> bool:
    """Processes the event that is due longest. Returns whether one was due.

    `chance` returns a number from 0 to 1, which spreads the times of the next attempts.
    """
    if not has_due(Received):
        return False
    for event in claim_due_event():
        process_event(event, chance())
    return True


@transaction.atomic(durable=True)
def claim_due_event() -> list[Received]:
    """Leases one event: during a slow handler, the leases of others could end. One whose lease ended too often becomes
    dead.
    """
    claim = leases.claim_due(Received, 1)
    finish_rows(Received, claim.poisoned_pks, Received.State.DEAD, attempts=0, error=POISONED_REASON)
    return list(Received.objects.filter(pk__in=claim.pks).select_related("source"))


def process_event(event: Received, chance: float) -> None:
    """Runs the handlers of a leased event and marks it as done, both or neither."""
    try:
        with transaction.atomic(durable=True):
            run_handlers(event)
    # Any exception of a handler is stored for people to read, and the next events are processed.
    except Exception as error:
        log.warning("Event %s of kind %s failed.", event.pk, event.kind, exc_info=error)
        schedule_retry(event, describe_error(error), chance)


def run_handlers(event: Received) -> None:
    """Does nothing if another worker has the event."""
    if not lock_leased(event):
        return
    [now] = Received.objects.filter(pk=event.pk).annotate(now=Now()).values_list("now", flat=True)
    for handle in HANDLERS_BY_KIND.get(event.kind, ()):
        handle(event, json.loads(bytes(event.body)), now)
    finish_rows(Received, [event.pk], Received.State.DONE, error="")


@transaction.atomic
def schedule_retry(event: Received, error: str, chance: float) -> None:
    """Counts an attempt; after the last one, the event is dead."""
    if not lock_leased(event):
        return
    attempt = event.attempted + 1
    if EVENT_RETRIES.is_last(attempt):
        finish_rows(Received, [event.pk], Received.State.DEAD, error=error)
    else:
        retry_rows(Received, [event.pk], EVENT_RETRIES.get_delay(attempt, chance), error=error)


def requeue_dead(events: QuerySet[Received]) -> int:
    """Makes dead events due again, as if they were new. Returns how many. Needs a transaction."""
    dead = events.filter(state=Received.State.DEAD)
    return dead.update(state=Received.State.WAITING, next_at=Now(), attempted=0, claimed=0, finished_at=None)
