"""What slows those who guess secrets: django-axes counts failures by client and address, for all processes."""

from typing import Any

from axes.handlers.proxy import AxesProxyHandler
from django.conf import settings
from django.http import HttpRequest, HttpResponse

# As many people as share a public app's address may meet a code or a token that is over; nobody mistypes a secret.
LIMITS = {"client": 10, "public client": 100}
PEOPLE = 5


def failure_limit(request: HttpRequest, credentials: dict[str, Any] | None = None) -> int:
    """django-axes' AXES_FAILURE_LIMIT."""
    name = (credentials or {}).get("username") or ""
    return LIMITS.get(name.partition(":")[0], PEOPLE)


def client(client_id: str, secret: bool) -> str:
    """The name by which a client's failures are counted: with a secret and without, it is not the same guess."""
    return f"{'client' if secret else 'public client'}:{client_id}"[:200]


def counts(client: str, response: HttpResponse) -> bool:
    """Whether an answer tells of a failed guess: of a secret, or of a code or a token where there is no secret."""
    guess = client.startswith("public") and b'"invalid_grant"' in response.content
    return response.status_code == 401 or guess


def wait(request: HttpRequest, client: str) -> int:
    """Seconds before this client may try again from this address; 0 if it may."""
    allowed = AxesProxyHandler.is_allowed(bare(request), {"username": client})
    return 0 if allowed else int(settings.AXES_COOLOFF_TIME.total_seconds())


def failed(request: HttpRequest, client: str) -> None:
    AxesProxyHandler.user_login_failed("oauth", {"username": client}, bare(request))


def bare(request: HttpRequest) -> HttpRequest:
    """The request without its parameters: django-axes keeps those, and secrets are among them."""
    without = HttpRequest()
    without.META, without.path, without.path_info = request.META, request.path, request.path_info
    without.method = request.method
    return without
