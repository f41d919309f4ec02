"""Apps, registered and changed by operators and developers. A secret is generated, told once, and kept as a hash."""

from datetime import datetime

from django.core.exceptions import ValidationError
from django.db import transaction
from oauth2_provider.generators import generate_client_secret
from oauth2_provider.models import Application

from oauth import scopes
from oauth.models import Allowance, Authorization
from oauth.scopes import SCOPES, ScopeSet
from oauth.server import redirect_uris
from oauth.tokens import revocations

MAX_NAME_LENGTH = 100


class NoSecret(Exception):
    """A public app has none."""


def register_app(app: Application, granted: ScopeSet) -> str:
    """Keeps a new app, which has its name, type, redirect URIs and owner; answers its secret, blank for a public one.

    Raises ValidationError.
    """
    app.authorization_grant_type = Application.GRANT_AUTHORIZATION_CODE
    # The toolkit would hash a blank secret, too.
    app.hash_client_secret = is_confidential(app)
    secret = generate_client_secret() if is_confidential(app) else ""
    app.client_secret = secret
    validate_app(app, granted)
    with transaction.atomic():
        app.save()
        Allowance.objects.create(application=app, scopes=scopes.format_scopes(granted))
    return secret


def change_app(app: Application, granted: ScopeSet, now: datetime) -> None:
    """Keeps a changed name, owner, redirect URIs and scopes. Raises ValidationError.

    Access beyond these scopes ends: tokens and keys that people let the app have would go on with them.
    """
    validate_app(app, granted)
    with transaction.atomic():
        app.save(update_fields=["name", "user", "redirect_uris", "updated"])
        Allowance.objects.update_or_create(application=app, defaults={"scopes": scopes.format_scopes(granted)})
        for lost in SCOPES.keys() - granted:
            revocations.revoke_authorizations(Authorization.objects.filter(application=app, scopes__contains=lost), now)


def renew_secret(app: Application) -> str:
    """Answers a new secret; the old one is refused from now on. Raises NoSecret."""
    if not is_confidential(app):
        raise NoSecret
    secret: str = generate_client_secret()
    app.client_secret, app.hash_client_secret = secret, True
    app.save(update_fields=["client_secret", "hash_client_secret", "updated"])
    return secret


def is_confidential(app: Application) -> bool:
    return bool(app.client_type == Application.CLIENT_CONFIDENTIAL)


def validate_app(app: Application, granted: ScopeSet) -> None:
    """Raises ValidationError."""
    validate_name(app.name)
    redirect_uris.validate_redirect_uris(app.redirect_uris)
    if not granted:
        raise ValidationError("Name at least one scope.")
    app.full_clean()


def validate_name(name: str) -> None:
    """What is shown to people must not look like something else. Raises ValidationError."""
    if not name.strip() or len(name) > MAX_NAME_LENGTH or not name.isprintable():
        raise ValidationError(f"A name takes 1 to {MAX_NAME_LENGTH} characters that can be seen.")
