"""The toolkit's request validator with our rules for clients, codes and tokens."""

import base64
import re
from datetime import datetime, timedelta
from typing import Any
from urllib.parse import unquote_plus
from uuid import NAMESPACE_OID, UUID, uuid5

from django.contrib.auth.hashers import check_password
from django.db.models import F
from django.utils import timezone
from oauth2_provider.models import Application, Grant, RefreshToken
from oauth2_provider.oauth2_validators import OAuth2Validator
from oauth2_provider.settings import oauth2_settings
from oauthlib.common import Request
from oauthlib.oauth2.rfc6749.errors import CustomOAuth2Error, InvalidGrantError, InvalidRequestError

from oauth.credentials import sha256_hex
from oauth.models import CONSENT_LIFETIME, Authorization
from oauth.server import redirect_uris
from oauth.server.registration import is_confidential
from oauth.tokens import access_tokens, revocations

# RFC 7636, 4.1.
CODE_VERIFIER = re.compile(r"[A-Za-z0-9._~-]{43,128}")


class RequestValidator(OAuth2Validator):
    """The toolkit's OAUTH2_VALIDATOR_CLASS. The views run its token requests inside a transaction."""

    def client_authentication_required(self, request: Request, *arguments: Any, **options: Any) -> bool:
        """False only for a registered public client that sends no secret."""
        application = self._load_application(request.client_id, request) if request.client_id else None
        return (
            uses_basic_auth(request)
            or bool(request.client_secret)
            or application is None
            or is_confidential(application)
        )

    def authenticate_client(self, request: Request, *arguments: Any, **options: Any) -> bool:
        """Authenticates a confidential client by its secret in the header or in the body."""
        if uses_basic_auth(request) and request.client_secret:
            raise InvalidRequestError(description="Use one way to authenticate the client.", request=request)
        client_id, secret = (
            parse_basic_auth(request) if uses_basic_auth(request) else (request.client_id, request.client_secret)
        )
        if not client_id or request.client_id not in (None, client_id):
            return False
        application = self._load_application(client_id, request)
        # Without a secret, Django would still compute a hash, which is slow.
        return bool(secret and application and is_confidential(application)) and check_password(
            secret, application.client_secret
        )

    def rotate_refresh_token(self, request: Request) -> bool:
        """Only for public clients (RFC 9700, 4.14.2): the specified response has no new token for others."""
        return not is_confidential(request.client)

    def is_pkce_required(self, client_id: str, request: Request) -> bool:
        return not is_confidential(request.client)

    def validate_redirect_uri(
        self, client_id: str, redirect_uri: str, request: Request, *arguments: Any, **options: Any
    ) -> bool:
        """Whether the URI is registered, compared exactly (RFC 9700, 2.1) except for a loopback port."""
        return redirect_uris.is_registered(redirect_uri, request.client.redirect_uris.split())

    def _create_authorization_code(self, request: Request, code: dict[str, str], expires: Any = None) -> Grant:
        # "" if the request named none: then the token request may leave it out, too (RFC 6749, 4.1.3).
        request.redirect_uri, used_uri = dict(request.uri_query_params).get("redirect_uri", ""), request.redirect_uri
        grant: Grant = super()._create_authorization_code(request, {**code, "code": sha256_hex(code["code"])}, expires)
        request.redirect_uri = used_uri
        return grant

    def validate_code(
        self, client_id: str, code: str, client: Application, request: Request, *arguments: Any, **options: Any
    ) -> bool:
        """Locks the code until the transaction ends. A replayed code ends its authorization (RFC 6749, 4.1.2)."""
        now = timezone.now()
        grants = Grant.objects.select_for_update(of=("self",)).select_related("user")
        grant = grants.filter(code=sha256_hex(code), application=client).first()
        request.authorization_id = uuid5(NAMESPACE_OID, code)
        if not grant:
            revocations.revoke_authorizations(
                Authorization.objects.filter(pk=request.authorization_id, application=client), now
            )
            return False
        if grant.expires <= now:
            raise CustomOAuth2Error("code_expired", description="The code has expired.", request=request)
        if not grant.user.is_active:
            return False
        request.grant, request.user, request.scopes = grant, grant.user, grant.scope.split()
        return True

    def get_code_challenge(self, code: str, request: Request) -> str | None:
        """Raises InvalidGrantError for a malformed verifier, or one without a challenge (RFC 9700, 4.8.2)."""
        verifier = request.code_verifier
        if verifier is not None and not (request.grant.code_challenge and CODE_VERIFIER.fullmatch(verifier)):
            raise InvalidGrantError(request=request)
        return request.grant.code_challenge or None

    def get_code_challenge_method(self, code: str, request: Request) -> str | None:
        return request.grant.code_challenge_method or None

    def confirm_redirect_uri(
        self, client_id: str, code: str, redirect_uri: str, client: Application, *arguments: Any, **options: Any
    ) -> bool:
        """Raises InvalidGrantError; oauthlib would answer invalid_request (RFC 6749, 5.2).

        oauthlib replaces a URI that the request left out with the only one of the app.
        """
        request = arguments[0]
        is_missing = request.grant.redirect_uri and request.using_default_redirect_uri
        if is_missing or redirect_uri != (request.grant.redirect_uri or client.default_redirect_uri):
            raise InvalidGrantError(request=request)
        return True

    def invalidate_authorization_code(
        self, client_id: str, code: str, request: Request, *arguments: Any, **options: Any
    ) -> None:
        """Does nothing: `_save_bearer_token` has deleted the code."""

    def _save_bearer_token(self, token: dict[str, Any], request: Request, *arguments: Any, **options: Any) -> None:
        now = timezone.now()
        if request.grant_type == "authorization_code":
            request.grant.delete()
            Authorization.objects.create(
                pk=request.authorization_id,
                user=request.user,
                application=request.client,
                scopes=request.grant.scope,
                created_at=now,
            )
        else:
            Authorization.objects.filter(pk=request.authorization_id).update(refreshed_at=now)
        super()._save_bearer_token(token, request, *arguments, **options)

    def _create_refresh_token(
        self, request: Request, refresh_token_code: str, access_token: Any, previous_refresh_token: Any
    ) -> RefreshToken:
        predecessor = RefreshToken(token_family=request.authorization_id)
        refresh_token: RefreshToken = super()._create_refresh_token(
            request, refresh_token_code, access_token, predecessor
        )
        return refresh_token

    def validate_refresh_token(
        self, refresh_token: str, client: Application, request: Request, *arguments: Any, **options: Any
    ) -> bool:
        """Locks the token until the transaction ends. A replaced token ends its authorization (RFC 9700, 4.14.2)."""
        now = timezone.now()
        tokens = RefreshToken.objects.select_for_update(of=("self",)).select_related("access_token", "user")
        token = tokens.filter(token_checksum=sha256_hex(refresh_token), application=client).first()
        authorization = token and find_authorization(token)
        if not token or not authorization:
            return False
        if token.revoked:
            revocations.revoke_authorizations(Authorization.objects.filter(pk=authorization.pk), now)
        if token.revoked or not is_usable(token, authorization, now):
            return False
        request.user, request.authorization_id, request.original_scopes = (
            token.user,
            authorization.pk,
            authorization.scopes,
        )
        request.refresh_token, request.refresh_token_instance = refresh_token, token
        return True

    def get_original_scopes(self, refresh_token: str, request: Request, *arguments: Any, **options: Any) -> str:
        """Returns the scopes that the user granted, even if an earlier token had fewer."""
        scopes: str = request.original_scopes
        return scopes

    def revoke_token(
        self, token: str, token_type_hint: str | None, request: Request, *arguments: Any, **options: Any
    ) -> None:
        """Ends the authorization of a token of this client (RFC 7009, 2.1)."""
        now = timezone.now()
        if sid := find_authorization_id(token, now):
            revocations.revoke_authorizations(Authorization.objects.filter(application=request.client, pk=sid), now)


def find_authorization_id(token: str, now: datetime) -> UUID | None:
    try:
        return access_tokens.verify_access_token(token, now.timestamp()).sid
    except access_tokens.InvalidToken:
        ids = RefreshToken.objects.filter(token_checksum=sha256_hex(token)).values_list("token_family", flat=True)
        return ids.order_by(F("revoked").desc(nulls_first=True)).first()


def find_authorization(token: RefreshToken) -> Authorization | None:
    return Authorization.objects.filter(pk=token.token_family).first() if token.token_family else None


def is_usable(token: RefreshToken, authorization: Authorization, now: datetime) -> bool:
    """Whether the authorization is active, the token was used recently enough, and the user is active."""
    max_idle_time = timedelta(seconds=oauth2_settings.REFRESH_TOKEN_EXPIRE_SECONDS)
    return bool(
        authorization.ended_at is None
        and authorization.created_at > now - CONSENT_LIFETIME
        and token.access_token
        and token.access_token.expires > now - max_idle_time
        and token.user.is_active
    )


def uses_basic_auth(request: Request) -> bool:
    return bool(request.headers.get("HTTP_AUTHORIZATION", "")[:6].lower() == "basic ")


def parse_basic_auth(request: Request) -> tuple[str, str]:
    """Returns the id and the secret of a Basic header (RFC 6749, 2.3.1); both are "" if it is malformed."""
    try:
        text = base64.b64decode(request.headers["HTTP_AUTHORIZATION"][6:], validate=True).decode()
    except ValueError:
        return "", ""
    client_id, _, secret = (unquote_plus(part) for part in text.partition(":"))
    return ("", "") if "\0" in client_id else (client_id, secret)
