"""The authorization server's endpoints for apps (specification, Section 5): the toolkit's machinery under our rules."""

import time
from collections.abc import Callable
from functools import cache, wraps

from django.conf import settings
from django.db import transaction
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.urls import reverse
from django.utils import timezone
from django.views.decorators.csrf import csrf_exempt
from django.views.decorators.debug import sensitive_post_parameters
from django.views.decorators.http import require_POST, require_safe
from oauthlib.common import Request as ClientRequest
from oauthlib.oauth2.rfc6749 import errors

from oauth import lockout, scopes
from oauth.authentication import CHALLENGE, checked
from oauth.server.backend import Core
from oauth.server.error_responses import NOT_STORED, refusal, unreadable
from oauth.server.introspection import described
from oauth.server.validators import basic, tried_basic
from oauth.tokens import access_tokens, jwks

FORM = "application/x-www-form-urlencoded"
# Seconds for which others may keep the public keys.
KEYS_KEPT = 300

Endpoint = Callable[[HttpRequest], HttpResponse]


def for_clients(answer: Endpoint) -> Endpoint:
    """What apps post to, with their credentials in it; who guesses is made to wait."""

    @csrf_exempt
    @require_POST
    @sensitive_post_parameters()
    @wraps(answer)
    def view(request: HttpRequest) -> HttpResponse:
        if request.content_type != FORM:
            return refusal(400, "invalid_request", f"The body must be {FORM}.")
        if problem := unreadable(request.POST) or ("Parameters belong into the body." if request.GET else ""):
            return refusal(400, "invalid_request", problem)
        client = presented(request)
        if seconds := lockout.wait(request, client):
            return refusal(429, "temporarily_unavailable", "Too many failures.", Retry_After=str(seconds))
        response = answer(request)
        if lockout.counts(client, response):
            lockout.failed(request, client)
        return response

    return view


def presented(request: HttpRequest) -> str:
    """The client by which failures are counted."""
    asked = ClientRequest("", headers=dict(request.META))
    client_id = basic(asked)[0] if tried_basic(asked) else request.POST.get("client_id", "")
    return lockout.client(client_id, secret=tried_basic(asked) or "client_secret" in request.POST)


@for_clients
def token(request: HttpRequest) -> HttpResponse:
    """RFC 6749, 3.2. Standard clients know one endpoint for both grants."""
    return issued(request, "authorization_code", "refresh_token")


@for_clients
def refresh(request: HttpRequest) -> HttpResponse:
    """The specification's own address for the refresh grant."""
    return issued(request, "refresh_token")


def issued(request: HttpRequest, *grant_types: str) -> HttpResponse:
    grant_type = request.POST.get("grant_type")
    if not grant_type:
        return refusal(400, "invalid_request", "Missing grant_type parameter.")
    if grant_type not in grant_types:
        return refusal(400, "unsupported_grant_type")
    # A refusal is an answer too, and what it revokes must stay revoked: only what fails is rolled back.
    with transaction.atomic():
        _, _, body, status = core().create_token_response(request)
    return answered(request, status, body)


@for_clients
def revoke(request: HttpRequest) -> HttpResponse:
    """RFC 7009."""
    with transaction.atomic():
        _, _, body, status = core().create_revocation_response(request)
    return answered(request, status, body)


@for_clients
def introspect(request: HttpRequest) -> HttpResponse:
    """RFC 7662. Confidential clients may ask about any access token, and about refresh tokens of their own."""
    asked = ClientRequest("", "POST", dict(core().extract_body(request)), dict(request.META))
    try:
        known = core().server.request_validator.authenticate_client(asked)
    except errors.OAuth2Error as error:
        return answered(request, error.status_code, error.json)
    if not known:
        return answered(request, 401, errors.InvalidClientError().json)
    if not asked.token:
        return refusal(400, "invalid_request", "Missing token parameter.")
    found = described(asked.token, asked.client, timezone.now())
    return JsonResponse(found, headers=NOT_STORED)


@cache
def core() -> Core:
    return Core()


def answered(request: HttpRequest, status: int, body: str) -> HttpResponse:
    """oauthlib's answer, with the challenge that RFC 6749, 5.2 asks for: Basic, and only of who tried it."""
    response = HttpResponse(body, "application/json", status, headers=NOT_STORED)
    if status == 401 and "HTTP_AUTHORIZATION" in request.META:
        response["WWW-Authenticate"] = 'Basic realm="Library API", charset="UTF-8"'
    return response


@csrf_exempt
@require_safe
def resource(request: HttpRequest) -> HttpResponse:
    """Who a token speaks for. Its three errors are the specification's; the challenge knows two (RFC 6750, 3.1)."""
    scheme, _, given = request.headers.get("Authorization", "").partition(" ")
    if scheme.lower() != "bearer" or not given.strip():
        return refusal(401, "missing_token", "The request has no Bearer token.", WWW_Authenticate=CHALLENGE)
    bad = f'{CHALLENGE}, error="invalid_token"'
    try:
        claims, left = checked(given.strip(), time.time())
    except access_tokens.TokenExpired:
        return refusal(401, "token_expired", "The access token has expired.", WWW_Authenticate=bad)
    except access_tokens.InvalidToken:
        return refusal(401, "invalid_token", "The access token is not valid.", WWW_Authenticate=bad)
    body = {
        "user_id": str(claims.user_id),
        "scope": scopes.text(left),
        "message": "This token is good for the library.",
    }
    return JsonResponse(body, headers=NOT_STORED)


@csrf_exempt
@require_safe
def metadata(request: HttpRequest) -> JsonResponse:
    """RFC 8414."""
    by_secret = ["client_secret_basic", "client_secret_post"]
    body = {
        "issuer": settings.PUBLIC_URL,
        **{
            name: f"{settings.PUBLIC_URL}{reverse(f'oauth:{view}')}"
            for name, view in {
                "authorization_endpoint": "authorize",
                "token_endpoint": "token",
                "revocation_endpoint": "revoke",
                "introspection_endpoint": "introspect",
                "jwks_uri": "jwks",
            }.items()
        },
        "scopes_supported": list(scopes.SCOPES),
        "response_types_supported": ["code"],
        "response_modes_supported": ["query"],
        "grant_types_supported": ["authorization_code", "refresh_token"],
        "token_endpoint_auth_methods_supported": [*by_secret, "none"],
        "revocation_endpoint_auth_methods_supported": [*by_secret, "none"],
        "introspection_endpoint_auth_methods_supported": by_secret,
        "code_challenge_methods_supported": ["S256"],
        "authorization_response_iss_parameter_supported": True,
        "service_documentation": f"{settings.PUBLIC_URL}/docs",
    }
    return JsonResponse(body)


@csrf_exempt
@require_safe
def public_keys(request: HttpRequest) -> JsonResponse:
    """RFC 7517."""
    published = jwks.published(jwks.current(), time.time())
    return JsonResponse(published, headers={"Cache-Control": f"public, max-age={KEYS_KEPT}"})
