"""What slows those who guess secrets: django-axes counts failures by client and address, for all processes."""

from datetime import timedelta
from typing import Any

from axes.handlers.proxy import AxesProxyHandler
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.cache import never_cache

# As many people as share a public app's address may meet a code or a token that is over; nobody mistypes a secret.
MAX_CLIENT_FAILURES = {"client": 10, "public client": 100}
MAX_LOGIN_FAILURES = 5
COOLOFF = timedelta(minutes=5)


def get_failure_limit(request: HttpRequest, credentials: dict[str, Any] | None = None) -> int:
    """django-axes' AXES_FAILURE_LIMIT."""
    name = (credentials or {}).get("username") or ""
    return MAX_CLIENT_FAILURES.get(name.partition(":")[0], MAX_LOGIN_FAILURES)


def get_cooloff(request: HttpRequest | None = None) -> timedelta:
    """django-axes' AXES_COOLOFF_TIME: how long after the last failure the next try is allowed."""
    return COOLOFF


def get_lockout_parameters(request: HttpRequest, credentials: dict[str, Any] | None = None) -> list[list[str]]:
    """django-axes' AXES_LOCKOUT_PARAMETERS: failures are counted by name and address together."""
    return [["username", "ip_address"]]


def client_key(client_id: str, secret: bool) -> str:
    """The name by which a client's failures are counted: with a secret and without, it is not the same guess."""
    return f"{'client' if secret else 'public client'}:{client_id}"[:200]


def is_failed_guess(client: str, response: HttpResponse) -> bool:
    """Whether an answer tells of a failed guess: of a secret, or of a code or a token where there is no secret."""
    guess = client.startswith("public") and b'"invalid_grant"' in response.content
    return response.status_code == 401 or guess


def seconds_until_allowed(request: HttpRequest, client: str) -> int:
    """Seconds before this client may try again from this address; 0 if it may."""
    allowed = AxesProxyHandler.is_allowed(strip_parameters(request), {"username": client})
    return 0 if allowed else int(COOLOFF.total_seconds())


def record_failure(request: HttpRequest, client: str) -> None:
    AxesProxyHandler.user_login_failed("oauth", {"username": client}, strip_parameters(request))


def strip_parameters(request: HttpRequest) -> HttpRequest:
    """The request without its parameters: django-axes keeps those, and secrets are among them."""
    without = HttpRequest()
    without.META, without.path, without.path_info = request.META, request.path, request.path_info
    without.method = request.method
    return without


@never_cache
def render_locked(request: HttpRequest, response: HttpResponse, credentials: Any, *arguments: Any) -> HttpResponse:
    """django-axes' AXES_LOCKOUT_CALLABLE."""
    seconds = int(COOLOFF.total_seconds())
    page = render(request, "accounts/locked.html", {"minutes": seconds // 60}, status=429)
    page["Retry-After"] = str(seconds)
    return page
