"""The authorization server's endpoints for apps (specification, Section 5), built on the toolkit."""

import time
from collections.abc import Callable
from functools import cache, wraps

from django.db import transaction
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.utils import timezone
from django.views.decorators.csrf import csrf_exempt
from django.views.decorators.debug import sensitive_post_parameters
from django.views.decorators.http import require_POST, require_safe
from oauthlib.common import Request as ClientRequest
from oauthlib.oauth2.rfc6749 import errors

from library_site.api.responses import NO_STORE
from oauth import scopes
from oauth.authentication import find_bearer, verify_token
from oauth.credentials import build_challenge
from oauth.passwords import lockout
from oauth.passwords.hashers import HashingBusy
from oauth.server.backend import OAuthBackend, list_grant_types
from oauth.server.error_responses import describe_malformed, error_response
from oauth.server.introspection import introspect_token
from oauth.server.validators import parse_basic_auth, uses_basic_auth
from oauth.tokens import access_tokens

FORM_CONTENT_TYPE = "application/x-www-form-urlencoded"
View = Callable[[HttpRequest], HttpResponse]


def client_endpoint(endpoint: View) -> View:
    """Decorates an endpoint for forms with client credentials. Clients that guess secrets are locked out."""

    @csrf_exempt
    @require_POST
    @sensitive_post_parameters()
    @wraps(endpoint)
    def wrapper(request: HttpRequest) -> HttpResponse:
        if request.content_type != FORM_CONTENT_TYPE:
            return error_response(400, "invalid_request", f"The body must be {FORM_CONTENT_TYPE}.")
        if problem := describe_malformed(request.POST) or ("Parameters belong into the body." if request.GET else ""):
            return error_response(400, "invalid_request", problem)
        client = get_client_key(request)
        if seconds := lockout.get_seconds_until_allowed(request, client):
            return error_response(429, "temporarily_unavailable", "Too many failures.", Retry_After=str(seconds))
        try:
            response = endpoint(request)
        except HashingBusy as error:
            wait = error.headers["Retry-After"]
            return error_response(error.status_code, "temporarily_unavailable", error.default_detail, Retry_After=wait)
        if lockout.is_failed_guess(client, response):
            lockout.record_failed_attempt(request, client)
        return response

    return wrapper


def get_client_key(request: HttpRequest) -> str:
    client_request = ClientRequest("", headers=dict(request.META))
    has_basic_auth = uses_basic_auth(client_request)
    client_id = parse_basic_auth(client_request)[0] if has_basic_auth else request.POST.get("client_id", "")
    return lockout.build_client_key(client_id, secret=has_basic_auth or "client_secret" in request.POST)


@client_endpoint
def token(request: HttpRequest) -> HttpResponse:
    """RFC 6749, 3.2. Standard clients use this endpoint for all grants."""
    return issue_token(request, *list_grant_types())


@client_endpoint
def refresh(request: HttpRequest) -> HttpResponse:
    """The specification's own address for the refresh grant."""
    return issue_token(request, "refresh_token")


def issue_token(request: HttpRequest, *grant_types: str) -> HttpResponse:
    grant_type = request.POST.get("grant_type")
    if not grant_type:
        return error_response(400, "invalid_request", "Missing grant_type parameter.")
    if grant_type not in grant_types:
        return error_response(400, "unsupported_grant_type")
    # An error response is committed too, because it can revoke tokens; only an exception rolls back.
    with transaction.atomic():
        _, _, body, status = get_backend().create_token_response(request)
    return build_oauth_response(request, status, body)


@client_endpoint
def revoke(request: HttpRequest) -> HttpResponse:
    """RFC 7009."""
    with transaction.atomic():
        _, _, body, status = get_backend().create_revocation_response(request)
    return build_oauth_response(request, status, body)


@client_endpoint
def introspect(request: HttpRequest) -> HttpResponse:
    """RFC 7662. Confidential clients can introspect any access token, and their own refresh tokens."""
    client_request = ClientRequest("", "POST", dict(get_backend().extract_body(request)), dict(request.META))
    try:
        is_authenticated = get_backend().server.request_validator.authenticate_client(client_request)
    except errors.OAuth2Error as error:
        return build_oauth_response(request, error.status_code, error.json)
    if not is_authenticated:
        return build_oauth_response(request, 401, errors.InvalidClientError().json)
    if not client_request.token:
        return error_response(400, "invalid_request", "Missing token parameter.")
    body = introspect_token(client_request.token, client_request.client, timezone.now())
    return JsonResponse(body, headers=NO_STORE)


@cache
def get_backend() -> OAuthBackend:
    return OAuthBackend()


def build_oauth_response(request: HttpRequest, status: int, body: str) -> HttpResponse:
    """Builds Django's response from oauthlib's. A failed Basic authentication gets a challenge (RFC 6749, 5.2)."""
    response = HttpResponse(body, "application/json", status, headers=NO_STORE)
    if status == 401 and "HTTP_AUTHORIZATION" in request.META:
        response["WWW-Authenticate"] = 'Basic realm="Library API", charset="UTF-8"'
    return response


@csrf_exempt
@require_safe
def resource(request: HttpRequest) -> HttpResponse:
    """Returns the user of a token. The specification defines three errors, RFC 6750, 3.1 a challenge for two."""
    if not (access_token := find_bearer(request.META)):
        return error_response(
            401, "missing_token", "The request has no Bearer token.", WWW_Authenticate=build_challenge()
        )
    challenge = build_challenge(error="invalid_token")
    try:
        claims, rights = verify_token(access_token, time.time())
    except access_tokens.TokenExpired:
        return error_response(401, "token_expired", "The access token has expired.", WWW_Authenticate=challenge)
    except access_tokens.InvalidToken:
        return error_response(401, "invalid_token", "The access token is not valid.", WWW_Authenticate=challenge)
    body = {
        "user_id": None if claims.user_id is None else claims.sub,
        "scope": scopes.format_scopes(rights.scopes),
        "message": "This token is good for the library.",
    }
    return JsonResponse(body, headers=NO_STORE)
