"""The lockout of clients that guess secrets: django-axes counts failures by name and address, for all processes."""

from datetime import timedelta
from typing import Any

from axes.handlers.proxy import AxesProxyHandler
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.cache import never_cache

# Users of a public app who share an address can all send expired codes or tokens; nobody mistypes a client secret.
MAX_CLIENT_FAILURES = {"client": 10, "public client": 100}
MAX_LOGIN_FAILURES = 5
COOLOFF = timedelta(minutes=5)


def get_failure_limit(request: HttpRequest, credentials: dict[str, Any] | None = None) -> int:
    """django-axes' AXES_FAILURE_LIMIT."""
    name = (credentials or {}).get("username") or ""
    return MAX_CLIENT_FAILURES.get(name.partition(":")[0], MAX_LOGIN_FAILURES)


def get_cooloff(request: HttpRequest | None = None) -> timedelta:
    """django-axes' AXES_COOLOFF_TIME: the time between the last failure and the next allowed try."""
    return COOLOFF


def get_lockout_parameters(request: HttpRequest, credentials: dict[str, Any] | None = None) -> list[list[str]]:
    """django-axes' AXES_LOCKOUT_PARAMETERS: failures are counted by the pair of name and address."""
    return [["username", "ip_address"]]


def build_client_key(client_id: str, secret: bool) -> str:
    """The name by which a client's failures are counted. Guesses with a secret are counted separately."""
    return f"{'client' if secret else 'public client'}:{client_id}"[:200]


def is_failed_guess(client: str, response: HttpResponse) -> bool:
    """Whether a response reports a failed guess: of a secret, or of a code or token by a public client."""
    is_failed_grant = client.startswith("public") and b'"invalid_grant"' in response.content
    return response.status_code == 401 or is_failed_grant


def seconds_until_allowed(request: HttpRequest, client: str) -> int:
    """The seconds until this client may try again from this address; 0 if it may now."""
    is_allowed = AxesProxyHandler.is_allowed(strip_parameters(request), {"username": client})
    return 0 if is_allowed else int(COOLOFF.total_seconds())


def record_failure(request: HttpRequest, client: str) -> None:
    AxesProxyHandler.user_login_failed("oauth", {"username": client}, strip_parameters(request))


def strip_parameters(request: HttpRequest) -> HttpRequest:
    """Copies the request without its parameters: django-axes stores them, and they contain secrets."""
    copy = HttpRequest()
    copy.META, copy.path, copy.path_info = request.META, request.path, request.path_info
    copy.method = request.method
    return copy


@never_cache
def render_locked(request: HttpRequest, response: HttpResponse, credentials: Any, *arguments: Any) -> HttpResponse:
    """django-axes' AXES_LOCKOUT_CALLABLE: the page for people who must wait."""
    seconds = int(COOLOFF.total_seconds())
    page = render(request, "accounts/locked.html", {"minutes": seconds // 60}, status=429)
    page["Retry-After"] = str(seconds)
    return page
