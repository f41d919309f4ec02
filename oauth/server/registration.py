"""Apps, registered and changed by operators and developers. A secret is generated, told once, and kept as a hash."""

from datetime import datetime

from django.core.exceptions import ValidationError
from django.db import transaction
from oauth2_provider.generators import generate_client_secret
from oauth2_provider.models import Application

from oauth import scopes
from oauth.models import Allowance, Authorization
from oauth.scopes import SCOPES, Granted
from oauth.server import redirect_uris
from oauth.tokens import revocations

LONGEST_NAME = 100


class NoSecret(Exception):
    """A public app has none."""


def register(app: Application, granted: Granted) -> str:
    """Keeps a new app, which has its name, type, redirect URIs and owner; answers its secret, blank for a public one.

    Raises ValidationError.
    """
    app.authorization_grant_type = Application.GRANT_AUTHORIZATION_CODE
    # The toolkit would hash a blank secret, too.
    app.hash_client_secret = confidential(app)
    secret = generate_client_secret() if confidential(app) else ""
    app.client_secret = secret
    check(app, granted)
    with transaction.atomic():
        app.save()
        Allowance.objects.create(application=app, scopes=scopes.text(granted))
    return secret


def change(app: Application, granted: Granted, now: datetime) -> None:
    """Keeps a changed name, owner, redirect URIs and scopes. Raises ValidationError.

    Access beyond these scopes ends: tokens and keys that people let the app have would go on with them.
    """
    check(app, granted)
    with transaction.atomic():
        app.save(update_fields=["name", "user", "redirect_uris", "updated"])
        Allowance.objects.update_or_create(application=app, defaults={"scopes": scopes.text(granted)})
        for lost in SCOPES.keys() - granted:
            revocations.end(Authorization.objects.filter(application=app, scopes__contains=lost), now)


def renew_secret(app: Application) -> str:
    """Answers a new secret; the old one is refused from now on. Raises NoSecret."""
    if not confidential(app):
        raise NoSecret
    secret: str = generate_client_secret()
    app.client_secret, app.hash_client_secret = secret, True
    app.save(update_fields=["client_secret", "hash_client_secret", "updated"])
    return secret


def confidential(app: Application) -> bool:
    return bool(app.client_type == Application.CLIENT_CONFIDENTIAL)


def check(app: Application, granted: Granted) -> None:
    """Raises ValidationError."""
    check_name(app.name)
    redirect_uris.check(app.redirect_uris)
    if not granted:
        raise ValidationError("Name at least one scope.")
    app.full_clean()


def check_name(name: str) -> None:
    """What is shown to people must not look like something else. Raises ValidationError."""
    if not name.strip() or len(name) > LONGEST_NAME or not name.isprintable():
        raise ValidationError(f"A name takes 1 to {LONGEST_NAME} characters that can be seen.")
