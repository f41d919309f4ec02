"""One request, however often it is sent: Idempotency-Key, with the meaning that Stripe and pretix give it.

The answer is kept in the transaction that made it, so a crash leaves both or neither.
"""

import re
from collections.abc import Callable, Iterator
from datetime import datetime, timedelta
from functools import wraps
from hashlib import sha256
from typing import Any

from django.db import connection, transaction
from django.db.models import QuerySet
from django.http import HttpResponse
from django.utils import timezone
from rest_framework.exceptions import APIException, ErrorDetail, ParseError, ValidationError
from rest_framework.request import Request

from books.changes import IsbnInUse
from books.models import StoredResponse
from oauth.callers import caller_key
from oauth.credentials import sha256_hex

IDEMPOTENCY_HEADER = "Idempotency-Key"
KEY_PATTERN = re.compile(r"[!-~]{1,255}")
RESPONSE_LIFETIME = timedelta(hours=24)
STORED_HEADERS = ("Content-Type", "ETag", "Link", "Location")

Action = Callable[..., HttpResponse]


class KeyInUse(APIException):
    """A request with this key is being answered."""

    status_code = 409
    default_detail = "A request with this Idempotency-Key is being answered"
    default_code = "key_in_flight"


class KeyReused(APIException):
    """The key came with another request before."""

    status_code = 422
    default_detail = "This Idempotency-Key came with another request before"
    default_code = "key_of_another_request"


def idempotent(action: Action) -> Action:
    """Makes an action of a viewset answer a repeated request again, and carry it out once."""

    @wraps(action)
    def once(view: Any, request: Request, *arguments: Any, **options: Any) -> HttpResponse:
        given = request.headers.get(IDEMPOTENCY_HEADER)
        if given is None:
            return action(view, request, *arguments, **options)
        key, now = hash_key(caller_key(request), validate_key(given)), timezone.now()
        unreadable = find_parse_error(view, request)
        with transaction.atomic():
            lock_key(key)
            if kept := StoredResponse.objects.filter(key=key, stored_at__gt=now - RESPONSE_LIFETIME).first():
                return replay_response(kept, request)
            response = run_action(view, action, unreadable, request, *arguments, **options)
            store_response(key, request, response, now)
        return response

    return once


def validate_key(key: str) -> str:
    if not KEY_PATTERN.fullmatch(key):
        raise ValidationError(
            {IDEMPOTENCY_HEADER: [ErrorDetail("It takes 1 to 255 visible ASCII characters.", "invalid")]}
        )
    return key


def hash_key(*parts: str) -> str:
    return sha256_hex("\n".join(parts))


def lock_key(key: str) -> None:
    """Keeps others with this key out to the end of the transaction. SQLite has one writer at a time as it is."""
    if connection.vendor != "postgresql":
        return
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_try_advisory_xact_lock(hashtextextended(%s, 0))", [key])
        if cursor.fetchone() != (True,):
            raise KeyInUse


def find_parse_error(view: Any, request: Request) -> ParseError | None:
    """Reads the body before the transaction, in which others may wait; what is wrong with it is answered inside."""
    try:
        view.read_json(request)
    except ParseError as error:
        return error
    return None


def run_action(
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


def store_response(key: str, request: Request, response: HttpResponse, now: datetime) -> None:
    """Keeps an answer, in place of one that is too old."""
    StoredResponse.objects.update_or_create(
        key=key,
        defaults={
            "fingerprint": hash_request(request),
            "status": response.status_code,
            "headers": {name: response[name] for name in STORED_HEADERS if name in response},
            "body": response.content,
            "stored_at": now,
        },
    )


def replay_response(kept: StoredResponse, request: Request) -> HttpResponse:
    """The first answer again. Raises KeyOfAnotherRequest."""
    if kept.fingerprint != hash_request(request):
        raise KeyReused
    headers = {**kept.headers, "Idempotent-Replayed": "true"}
    return HttpResponse(bytes(kept.body), status=kept.status, headers=headers)


def hash_request(request: Request) -> str:
    """SHA-256 of method, address and body."""
    whole = sha256(f"{request.method} {request.path_info}?{request.META['QUERY_STRING']}\n".encode())
    whole.update(request.META["wsgi.input"].getvalue())
    return whole.hexdigest()


def iter_expired(now: datetime) -> Iterator[tuple[str, QuerySet[Any]]]:
    """Stored responses that are no longer given again."""
    yield "kept answers", StoredResponse.objects.filter(stored_at__lte=now - RESPONSE_LIFETIME)
