"""The lockout against guessing: django-axes counts failures by name and address, for all processes together.

An attempt with a user's password is counted before the password is checked, so that concurrent guesses cannot exceed
the limit together, and no longer once the password was right. Attempts are also counted per address, because one
address can try many names.
"""

import logging
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any, NamedTuple

from axes.backends import AxesBackend
from axes.handlers.database import AxesDatabaseHandler
from axes.handlers.proxy import AxesProxyHandler
from axes.models import AccessAttempt
from django.conf import settings
from django.contrib.auth.backends import BaseBackend, ModelBackend
from django.contrib.auth.models import User
from django.contrib.auth.signals import user_login_failed
from django.db import transaction
from django.db.models import Case, F, Q, QuerySet, Sum, Value, When
from django.db.models.functions import Coalesce
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.cache import never_cache

from oauth.passwords.hashers import HashingBusy

log = logging.getLogger(__name__)

# Many users of a public app can share an address and send expired codes or tokens. Client secrets are never mistyped.
MAX_CLIENT_FAILURES = {"client": 10, "public client": 100}
MAX_LOGIN_FAILURES = 5
# For all names together. Many users can share an address; a sign-in deletes only the failures of its own name.
MAX_ADDRESS_FAILURES = 20
COOLOFF: timedelta = settings.AXES_COOLOFF_TIME
# No client id begins like this, so the counters of users and clients stay separate.
USER_PREFIX = "user:"


class Failures(NamedTuple):
    """The recent failed attempts from one address: with one name, and with all names."""

    by_name: int
    by_address: int


class LockoutBackend(AxesBackend):
    """Checks passwords as Django's ModelBackend does, unless the name or the address is locked out.

    Code without a request, such as a command or `django.test.Client.login`, counts as one more address: guesses there
    lock out a name for such code alone.
    """

    # Django's own awaits the check of the password alone.
    aauthenticate = BaseBackend.aauthenticate  # type: ignore[assignment]  # its arguments have no names

    def authenticate(
        self, request: HttpRequest | None, username: str | None = None, password: str | None = None, **options: Any
    ) -> User | None:
        """Raises PermissionDenied, HashingBusy."""
        request = request or HttpRequest()
        super().authenticate(request, username, password, **options)
        try:
            user = ModelBackend.authenticate(self, request, username, password, **options)
        except HashingBusy:
            withdraw_attempt(request)
            raise
        if user:
            withdraw_attempt(request)
        return user


class LockoutHandler(AxesDatabaseHandler):
    """django-axes' AXES_HANDLER. axes calls it before a password is checked, and reports the result."""

    def is_allowed(self, request: Any, credentials: dict[str, Any] | None = None) -> bool:
        """Counts an attempt, unless the limit is reached: a rejected attempt does not extend the lockout."""
        if is_exhausted(count_failures(request, credentials)):
            return False
        count_attempt(request, credentials)
        # A concurrent attempt sees itself and the attempts that were counted before it.
        failures = count_failures(request, credentials)
        is_within = failures.by_name <= MAX_LOGIN_FAILURES and failures.by_address <= MAX_ADDRESS_FAILURES
        if not is_within:
            withdraw_attempt(request)
        return is_within

    def user_login_failed(self, sender: Any, credentials: Any, request: Any = None, **options: Any) -> None:
        """Counts a client's failure; a user's is already counted. After the last one the page shows the lockout."""
        if "client" in credentials:
            super().user_login_failed(sender, credentials, request, **options)
        elif request and is_exhausted(count_failures(request, credentials)):
            request.axes_locked_out = True
            log.warning("Too many wrong passwords: a name or an address is locked out.")


def get_counted_name(request: HttpRequest, credentials: dict[str, Any] | None = None) -> str:
    """django-axes' AXES_USERNAME_CALLABLE."""
    credentials = credentials or {}
    return str(credentials.get("client") or f"{USER_PREFIX}{credentials.get('username')}")


def count_failures(request: Any, credentials: dict[str, Any] | None) -> Failures:
    """Counts the attempts within COOLOFF. A sign-in has deleted the attempts before it."""
    attempts = select_recent_attempts(request.axes_attempt_time).filter(
        ip_address=request.axes_ip_address, username__startswith=USER_PREFIX
    )
    has_name = Q(username=get_counted_name(request, credentials))
    sums = attempts.aggregate(
        by_name=Coalesce(Sum("failures_since_start", filter=has_name), 0),
        by_address=Coalesce(Sum("failures_since_start"), 0),
    )
    return Failures(**sums)


def select_recent_attempts(now: datetime) -> QuerySet[AccessAttempt]:
    return AccessAttempt.objects.filter(attempt_time__gt=now - COOLOFF)


def is_exhausted(failures: Failures) -> bool:
    return failures.by_name >= MAX_LOGIN_FAILURES or failures.by_address >= MAX_ADDRESS_FAILURES


def count_attempt(request: Any, credentials: dict[str, Any] | None) -> None:
    with transaction.atomic():
        row, _ = AccessAttempt.objects.select_for_update().get_or_create(
            username=get_counted_name(request, credentials),
            ip_address=request.axes_ip_address,
            user_agent="",
            defaults={"path_info": request.axes_path_info, "failures_since_start": 0},
        )
        previous_time = row.attempt_time
        is_over = previous_time <= request.axes_attempt_time - COOLOFF
        row.failures_since_start = 1 if is_over else row.failures_since_start + 1
        row.attempt_time = max(previous_time, request.axes_attempt_time)
        row.save()
    request.counted_attempt = row.pk, previous_time


def withdraw_attempt(request: Any) -> None:
    """Removes the request's attempt from the count: its password was right, or was not checked."""
    if counted := vars(request).pop("counted_attempt", None):
        pk, previous_time = counted
        # A later attempt keeps its time.
        time = Case(When(attempt_time=request.axes_attempt_time, then=Value(previous_time)), default=F("attempt_time"))
        row = AccessAttempt.objects.filter(pk=pk, failures_since_start__gt=0)
        row.update(failures_since_start=F("failures_since_start") - 1, attempt_time=time)


class HashingBusyMiddleware:
    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        return self.get_response(request)

    def process_exception(self, request: HttpRequest, exception: Exception) -> HttpResponse | None:
        if not isinstance(exception, HashingBusy):
            return None
        withdraw_attempt(request)
        seconds = int(HashingBusy.headers["Retry-After"])
        return render_retry_page(request, "accounts/busy.html", seconds, status=HashingBusy.status_code)


@never_cache
def render_retry_page(
    request: HttpRequest, template: str, seconds: float, context: Any = None, status: int = 429
) -> HttpResponse:
    page = render(request, template, context, status=status)
    page["Retry-After"] = str(int(seconds))
    return page


def count_password_attempt(request: HttpRequest, username: str) -> bool:
    """Counts an attempt like one at the sign-in. Returns false if the limit is reached."""
    return bool(AxesProxyHandler.is_allowed(request, {"username": username}))


def report_failure(request: HttpRequest, username: str) -> None:
    """Reports a counted attempt as failed: after the last one the page shows the lockout."""
    user_login_failed.send(__name__, credentials={"username": username}, request=request)


def clear_attempts(request: Any, username: str) -> None:
    """Deletes the failures of this name at this address, as a sign-in does."""
    name = get_counted_name(request, {"username": username})
    AccessAttempt.objects.filter(username=name, ip_address=request.axes_ip_address).delete()


def clear_all_attempts(username: str) -> None:
    AccessAttempt.objects.filter(username=f"{USER_PREFIX}{username}").delete()


def get_failure_limit(request: HttpRequest, credentials: dict[str, Any]) -> int:
    """django-axes' AXES_FAILURE_LIMIT, which it needs for clients."""
    return MAX_CLIENT_FAILURES[credentials["client"].partition(":")[0]]


def build_client_key(client_id: str, secret: bool) -> str:
    """The name under which a client's failures are counted. Requests with a client secret have a separate count."""
    return f"{'client' if secret else 'public client'}:{client_id}"[:200]


def is_failed_guess(client: str, response: HttpResponse) -> bool:
    """Whether a response reports a wrong secret, or a wrong code or token of a public client."""
    is_failed_grant = client.startswith("public") and b'"invalid_grant"' in response.content
    return response.status_code == 401 or is_failed_grant


def get_seconds_until_allowed(request: HttpRequest, client: str) -> int:
    """The seconds until this client may retry from this address; 0 if it may retry now."""
    is_locked = AxesProxyHandler.is_locked(strip_parameters(request), {"client": client})
    return int(COOLOFF.total_seconds()) if is_locked else 0


def record_failed_attempt(request: HttpRequest, client: str) -> None:
    AxesProxyHandler.user_login_failed("oauth", {"client": client}, strip_parameters(request))


def strip_parameters(request: HttpRequest) -> HttpRequest:
    """Copies the request without its parameters: django-axes stores them, and they contain secrets."""
    copy = HttpRequest()
    copy.META, copy.path, copy.path_info = request.META, request.path, request.path_info
    copy.method = request.method
    return copy


def render_locked(request: HttpRequest, *arguments: Any) -> HttpResponse:
    """django-axes' AXES_LOCKOUT_CALLABLE: the page for locked-out users."""
    context = {"minutes": int(COOLOFF.total_seconds()) // 60}
    return render_retry_page(request, "accounts/locked.html", COOLOFF.total_seconds(), context)
