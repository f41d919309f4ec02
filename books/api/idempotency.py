"""One request, however often it is sent: Idempotency-Key, with the meaning that Stripe and pretix give it.

The answer is kept in the transaction that made it, so a crash leaves both or neither.
"""

import re
from collections.abc import Callable
from datetime import datetime, timedelta
from functools import wraps
from hashlib import sha256
from typing import Any

from django.db import connection, transaction
from django.http import HttpResponse
from django.utils import timezone
from rest_framework.exceptions import APIException, ErrorDetail, ParseError, ValidationError
from rest_framework.request import Request

from books.changes import IsbnInUse
from books.models import KeptAnswer
from oauth.callers import caller

HEADER = "Idempotency-Key"
KEY = re.compile(r"[!-~]{1,255}")
KEPT_FOR = timedelta(hours=24)
BATCH = 1_000
KEPT_HEADERS = ("Content-Type", "ETag", "Link", "Location")

Action = Callable[..., HttpResponse]


class KeyInFlight(APIException):
    """A request with this key is being answered."""

    status_code = 409
    default_detail = "A request with this Idempotency-Key is being answered"
    default_code = "key_in_flight"


class KeyOfAnotherRequest(APIException):
    """The key came with another request before."""

    status_code = 422
    default_detail = "This Idempotency-Key came with another request before"
    default_code = "key_of_another_request"


def idempotent(action: Action) -> Action:
    """Makes an action of a viewset answer a repeated request again, and carry it out once."""

    @wraps(action)
    def once(view: Any, request: Request, *arguments: Any, **options: Any) -> HttpResponse:
        given = request.headers.get(HEADER)
        if given is None:
            return action(view, request, *arguments, **options)
        key, now = digest(caller(request), checked(given)), timezone.now()
        unreadable = parse_error(view, request)
        with transaction.atomic():
            lock(key)
            if kept := KeptAnswer.objects.filter(key=key, kept_at__gt=now - KEPT_FOR).first():
                return replayed(kept, request)
            response = answered(view, action, unreadable, request, *arguments, **options)
            keep(key, request, response, now)
        return response

    return once


def checked(key: str) -> str:
    if not KEY.fullmatch(key):
        raise ValidationError({HEADER: [ErrorDetail("It takes 1 to 255 visible ASCII characters.", "invalid")]})
    return key


def digest(*parts: str) -> str:
    return sha256("\n".join(parts).encode()).hexdigest()


def lock(key: str) -> None:
    """Keeps others with this key out to the end of the transaction. SQLite has one writer at a time as it is."""
    if connection.vendor != "postgresql":
        return
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_try_advisory_xact_lock(hashtextextended(%s, 0))", [key])
        if cursor.fetchone() != (True,):
            raise KeyInFlight


def parse_error(view: Any, request: Request) -> ParseError | None:
    """Reads the body before the transaction, in which others may wait; what is wrong with it is answered inside."""
    try:
        view.data(request)
    except ParseError as error:
        return error
    return None


def answered(
    view: Any, action: Action, unreadable: ParseError | None, request: Request, *arguments: Any, **options: Any
) -> HttpResponse:
    """What the client gets, be it a refusal. Failures, and two changes that met, take the transaction with them."""
    try:
        if unreadable:
            raise unreadable
        return action(view, request, *arguments, **options)
    except (APIException, IsbnInUse) as error:
        response: HttpResponse = view.handle_exception(error)
        return response


def keep(key: str, request: Request, response: HttpResponse, now: datetime) -> None:
    """Keeps an answer, in place of one that is too old."""
    KeptAnswer.objects.update_or_create(
        key=key,
        defaults={
            "fingerprint": fingerprint(request),
            "status": response.status_code,
            "headers": {name: response[name] for name in KEPT_HEADERS if name in response},
            "body": response.content,
            "kept_at": now,
        },
    )


def replayed(kept: KeptAnswer, request: Request) -> HttpResponse:
    """The first answer again. Raises KeyOfAnotherRequest."""
    if kept.fingerprint != fingerprint(request):
        raise KeyOfAnotherRequest
    headers = {**kept.headers, "Idempotent-Replayed": "true"}
    return HttpResponse(bytes(kept.body), status=kept.status, headers=headers)


def fingerprint(request: Request) -> str:
    """SHA-256 of method, address and body."""
    whole = sha256(f"{request.method} {request.path_info}?{request.META['QUERY_STRING']}\n".encode())
    whole.update(request.META["wsgi.input"].getvalue())
    return whole.hexdigest()


def clear_expired(now: datetime) -> int:
    """Deletes answers that are no longer given, some at a time, so that no writer waits long; tells how many."""
    expired = KeptAnswer.objects.filter(kept_at__lte=now - KEPT_FOR).values_list("pk", flat=True)
    deleted = 0
    while batch := KeptAnswer.objects.filter(pk__in=list(expired[:BATCH])).delete()[0]:
        deleted += batch
    return deleted
