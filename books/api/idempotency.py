"""Idempotency-Key: a request is executed once, however often the client sends it, as at Stripe and pretix.

The response is stored in the transaction of the write, so a crash keeps both or neither.
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
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework.exceptions import (
    APIException,
    AuthenticationFailed,
    ErrorDetail,
    PermissionDenied,
    ValidationError,
)
from rest_framework.request import Request
from rest_framework.response import Response

from books.models import StoredResponse
from library_site.api.documents.errors import document_error
from library_site.http.api_errors import APIError
from library_site.http.callers import get_caller_key, hash_name, is_anonymous

IDEMPOTENCY_HEADER = "Idempotency-Key"
IDEMPOTENCY_KEY_PATTERN = re.compile(r"[!-~]{1,255}")
RESPONSE_LIFETIME = timedelta(hours=24)
STORED_HEADERS = ("Content-Type", "ETag", "Link", "Location", "Retry-After")

Action = Callable[..., HttpResponse]


class KeyInUse(APIError):
    """Another request with this key is not answered yet."""

    status_code = 409
    default_detail = "A request with this Idempotency-Key is being answered"


class KeyReused(APIError):
    """A different request of this credential had this key before."""

    status_code = 422
    default_detail = "This Idempotency-Key came with another request before"


KEY_IN_USE = document_error(KeyInUse, "Another request with this `Idempotency-Key` is not answered yet.")
IDEMPOTENCY_KEY_HEADER = OpenApiParameter(
    IDEMPOTENCY_HEADER,
    {"type": "string", "pattern": f"^{IDEMPOTENCY_KEY_PATTERN.pattern}$"},
    OpenApiParameter.HEADER,
    description="The same key within 24 hours gets the first answer again.",
)


def idempotent(action: Action) -> Action:
    """Decorates an action of a viewset: a repeated request gets the stored response, and is not executed again."""

    @wraps(action)
    def wrapper(view: Any, request: Request, *arguments: Any, **options: Any) -> HttpResponse:
        header = request.headers.get(IDEMPOTENCY_HEADER)
        if header is None:
            return action(view, request, *arguments, **options)
        fingerprint, now = hash_request(request), timezone.now()
        key = hash_key(validate_key(header), request, fingerprint)
        with transaction.atomic():
            lock_key(key)
            if stored_response := StoredResponse.objects.filter(key=key, stored_at__gt=now - RESPONSE_LIFETIME).first():
                return replay_response(stored_response, fingerprint)
            response = run_once(view, action, request, *arguments, **options)
            store_response(key, fingerprint, response, now)
        return response

    # For the OpenAPI documents.
    vars(wrapper)["error_documents"] = KEY_IN_USE.values()
    documented: Action = extend_schema(parameters=[IDEMPOTENCY_KEY_HEADER])(wrapper)
    return documented


def validate_key(key: str) -> str:
    """Returns the key. Raises ValidationError."""
    if not IDEMPOTENCY_KEY_PATTERN.fullmatch(key):
        raise ValidationError(
            {IDEMPOTENCY_HEADER: [ErrorDetail("It takes 1 to 255 visible ASCII characters.", "invalid")]}
        )
    return key


def hash_key(key: str, request: Request, fingerprint: str) -> str:
    """Returns the key of the stored response, which includes the caller: two callers may send the same key.

    Anonymous callers at one address may be different people, so their keys include the hash of the request, too.
    """
    parts = [get_caller_key(request), key, *([fingerprint] if is_anonymous(request) else [])]
    return hash_name("\n".join(parts))


def lock_key(key: str) -> None:
    """Locks the key until the transaction ends. SQLite needs no lock: it has one writer at a time. Raises KeyInUse."""
    if connection.vendor != "postgresql":
        return
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_try_advisory_xact_lock(hashtextextended(%s, 0))", [key])
        if cursor.fetchone() != (True,):
            raise KeyInUse


def run_once(view: Any, action: Action, request: Request, *arguments: Any, **options: Any) -> HttpResponse:
    """Returns the response of the action. An error response is stored, too.

    Unknown exceptions, refused credentials and temporary errors, such as ConcurrentChange, roll the transaction back.
    """
    response: HttpResponse
    try:
        response = view.finalize_response(request, action(view, request, *arguments, **options))
        return response.render() if isinstance(response, Response) else response
    except APIException as error:
        # Who may do more later tries again with the same key.
        is_forbidden = isinstance(error, AuthenticationFailed | PermissionDenied)
        if is_forbidden or (isinstance(error, APIError) and error.is_temporary):
            raise
        response = view.handle_exception(error)
        return response


def store_response(key: str, fingerprint: str, response: HttpResponse, now: datetime) -> None:
    """Stores a response, and replaces an expired one."""
    StoredResponse.objects.update_or_create(
        key=key,
        defaults={
            "fingerprint": fingerprint,
            "status": response.status_code,
            "headers": {name: response[name] for name in STORED_HEADERS if name in response},
            "body": response.content,
            "stored_at": now,
        },
    )


def replay_response(stored_response: StoredResponse, fingerprint: str) -> HttpResponse:
    """Returns the stored response. Raises KeyReused."""
    if stored_response.fingerprint != fingerprint:
        raise KeyReused
    headers = {**stored_response.headers, "Idempotent-Replayed": "true"}
    return HttpResponse(bytes(stored_response.body), status=stored_response.status, headers=headers)


def hash_request(request: Request) -> str:
    """Returns the SHA-256 of method, URL and body."""
    digest = sha256(f"{request.method} {request.path_info}?{request.META['QUERY_STRING']}\n".encode())
    digest.update(request.body)
    return digest.hexdigest()


def iter_expired(now: datetime) -> Iterator[tuple[str, QuerySet[StoredResponse]]]:
    """Yields the name in the report, and the queryset of expired responses."""
    yield "kept answers", StoredResponse.objects.filter(stored_at__lte=now - RESPONSE_LIFETIME)
