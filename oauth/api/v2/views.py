"""The views of API keys in version 2: people manage their own keys."""

from datetime import datetime
from typing import cast

from django.contrib.auth.models import User
from django.db.models import QuerySet
from django.http import HttpResponse, JsonResponse
from django.urls import reverse
from django.utils import timezone
from rest_framework.exceptions import ValidationError
from rest_framework.request import Request

from library_site.api.query import check_parameters
from library_site.api.responses import NO_STORE, make_empty_response
from library_site.api.viewsets import APIViewSet
from oauth import api_keys, issuers
from oauth.api.v2.documents import KEY_ID, document_api_keys
from oauth.api.v2.serializers import APIKeyCreateSerializer, APIKeySerializer
from oauth.credentials import Credential
from oauth.models import APIKey
from oauth.permissions import HasCredential, HasUser, InsufficientScope
from oauth.scopes import KEY_PERMISSIONS, get_user_rights


@document_api_keys
class APIKeyViewSet(APIViewSet):
    """Those of the credential's own person, while they are good."""

    permission_classes = [HasCredential, HasUser]
    # A key may make and end others of no more scopes than its own.
    scope = None
    required_permissions = KEY_PERMISSIONS
    noun = "API key"
    not_found = api_keys.KeyNotFound
    path_parameters = [KEY_ID]
    lookup_field, lookup_url_kwarg = "prefix", "key_id"
    queryset = APIKey.objects.order_by("pk")
    body_serializers = {"create": APIKeyCreateSerializer}

    def list(self, request: Request) -> HttpResponse:
        check_parameters(request, [])
        keys = self.get_queryset()[: api_keys.MAX_KEYS_PER_USER]
        results = APIKeySerializer(keys, many=True).data
        return JsonResponse({"results": results, "next": None, "previous": None}, headers=NO_STORE)

    def create(self, request: Request) -> HttpResponse:
        """Raises InsufficientScope for a scope that the caller's credential lacks."""
        check_parameters(request, [])
        values, now = self.read_values(request), timezone.now()
        require_scopes(request, values["scopes"])
        require_future(values["expires_at"], now)
        owner, creator = cast("tuple[User, Credential]", (request.user, request.auth))
        key, text = api_keys.create_key(owner, values["name"], values["scopes"], now, values["expires_at"], creator)
        location = reverse(f"{request.version}:api-key", kwargs={"key_id": key.prefix})
        body = {**APIKeySerializer(key).data, "key": text}
        return JsonResponse(body, status=201, headers={"Location": location, **NO_STORE})

    def retrieve(self, request: Request, key_id: str) -> HttpResponse:
        check_parameters(request, [])
        return JsonResponse(APIKeySerializer(self.get_object()).data, headers=NO_STORE)

    def destroy(self, request: Request, key_id: str) -> HttpResponse:
        """Raises InsufficientScope for a key with more scopes than the caller's credential."""
        check_parameters(request, [])
        key: APIKey = self.get_object()
        require_scopes(request, frozenset(key.scopes.split()))
        api_keys.revoke_keys(APIKey.objects.filter(pk=key.pk), timezone.now())
        return make_empty_response()

    def get_queryset(self) -> QuerySet[APIKey]:
        """Returns the user's active keys; an app sees only the keys that it or its keys created."""
        issued = issuers.build_issued_condition(cast("Credential", self.request.auth))
        return api_keys.list_active_keys(timezone.now()).filter(issued, owner=self.request.user.pk).order_by("pk")


def require_scopes(request: Request, scopes: frozenset[str]) -> None:
    """Raises InsufficientScope."""
    credential = cast("Credential", request.auth)
    if missing_scopes := sorted(scopes - credential.scopes):
        raise InsufficientScope(missing_scopes[0], get_user_rights(cast("int", credential.user_id)))


def require_future(expires_at: datetime | None, now: datetime) -> None:
    """Raises ValidationError for a time that is not in the future."""
    if expires_at and expires_at <= now:
        raise ValidationError({"expires_at": ["It is in the past."]})
