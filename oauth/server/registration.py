"""Registers and changes apps. A client secret is generated, shown once, and stored as a hash."""

from datetime import datetime

from django.core.exceptions import ValidationError
from django.db import transaction
from django.utils.translation import gettext_lazy as _
from oauth2_provider.generators import generate_client_secret
from oauth2_provider.models import Application

from oauth import scopes
from oauth.models import Allowance, Authorization
from oauth.scopes import SCOPES, ScopeSet
from oauth.server import redirect_uris
from oauth.tokens import revocations

MAX_NAME_LENGTH = 100


def register_app(app: Application, allowed_scopes: ScopeSet) -> str:
    """Saves a new app, whose name, type, redirect URIs and owner are set. Returns its secret, or "" for a public app.

    Raises ValidationError.
    """
    app.authorization_grant_type = app.authorization_grant_type or Application.GRANT_AUTHORIZATION_CODE
    # The toolkit would also hash an empty secret.
    app.hash_client_secret = is_confidential(app)
    secret = generate_client_secret() if is_confidential(app) else ""
    app.client_secret = secret
    validate_app(app, allowed_scopes)
    with transaction.atomic():
        app.save()
        Allowance.objects.create(application=app, scopes=scopes.format_scopes(allowed_scopes))
    return secret


def change_app(app: Application, allowed_scopes: ScopeSet, now: datetime) -> None:
    """Saves a changed app and its scopes. Raises ValidationError.

    Authorizations with other scopes end: otherwise their tokens and keys would keep those scopes.
    """
    validate_app(app, allowed_scopes)
    with transaction.atomic():
        app.save(update_fields=["name", "user", "redirect_uris", "updated"])
        Allowance.objects.update_or_create(application=app, defaults={"scopes": scopes.format_scopes(allowed_scopes)})
        for scope in SCOPES.keys() - allowed_scopes:
            revocations.revoke_authorizations(
                Authorization.objects.filter(application=app, scopes__contains=scope), now
            )


def renew_secret(app: Application) -> str:
    """Replaces the secret of a confidential app, and returns the new one."""
    secret: str = generate_client_secret()
    app.client_secret, app.hash_client_secret = secret, True
    app.save(update_fields=["client_secret", "hash_client_secret", "updated"])
    return secret


def is_confidential(app: Application) -> bool:
    return bool(app.client_type == Application.CLIENT_CONFIDENTIAL)


def acts_for_itself(app: Application) -> bool:
    """Whether the app gets tokens by its secret alone, and nobody lets it in."""
    return bool(app.authorization_grant_type == Application.GRANT_CLIENT_CREDENTIALS)


def validate_app(app: Application, allowed_scopes: ScopeSet) -> None:
    """Raises ValidationError."""
    validate_name(app.name)
    if not acts_for_itself(app):
        redirect_uris.validate_redirect_uris(app.redirect_uris)
    if not allowed_scopes:
        raise ValidationError(_("Name at least one scope."))
    app.full_clean()


def validate_name(name: str) -> None:
    """Rejects misleading names, such as blank or invisible ones. Raises ValidationError."""
    if not name.strip() or len(name) > MAX_NAME_LENGTH or not name.isprintable():
        raise ValidationError(
            _("A name takes 1 to %(count)d characters that can be seen."), params={"count": MAX_NAME_LENGTH}
        )
