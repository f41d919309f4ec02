"""The models of scopes, authorizations, API keys, second factors and mails to people."""

from datetime import datetime, timedelta
from uuid import uuid4

from django.conf import settings
from django.db import models
from django.db.models import Q
from django.utils.translation import gettext_lazy as _
from oauth2_provider.models import Application

from library_site.db.sql import Parameter

# After this time an app needs a new consent, however often it refreshed its token.
CONSENT_LIFETIME = timedelta(days=90)


class Allowance(models.Model):
    """The scopes that users may grant to an app."""

    application = models.OneToOneField(Application, models.CASCADE, primary_key=True, related_name="allowance")
    scopes = models.CharField(max_length=200)

    def __str__(self) -> str:
        return self.scopes


class AuthorizationQuerySet(models.QuerySet["Authorization"]):
    def active(self, now: datetime) -> "AuthorizationQuerySet":
        """Authorizations that are neither ended nor too old. Their refresh token may still have expired."""
        return self.filter(ended_at=None, created_at__gt=now - CONSENT_LIFETIME)


class Authorization(models.Model):
    """One grant of a user to an app. Its tokens carry its id in the claim `sid`.

    An ended authorization stays until its last access token has expired, even if its user or app is deleted.
    """

    id = models.UUIDField(primary_key=True, default=uuid4, editable=False)
    user = models.ForeignKey(settings.AUTH_USER_MODEL, models.SET_NULL, null=True, verbose_name=_("user"))
    application = models.ForeignKey(Application, models.SET_NULL, null=True, verbose_name=_("app"))
    scopes = models.CharField(_("scopes"), max_length=200)
    created_at = models.DateTimeField(_("created at"))
    refreshed_at = models.DateTimeField(_("refreshed at"), null=True)
    ended_at = models.DateTimeField(_("ended at"), null=True, db_index=True)

    objects = AuthorizationQuerySet.as_manager()

    class Meta:
        verbose_name, verbose_name_plural = _("authorization"), _("authorizations")
        indexes = [models.Index(fields=["created_at"], name="authorization_created_at")]

    def __str__(self) -> str:
        return f"{self.application} for {self.user}" if self.user else str(self.application)


class ChangedRights(models.Model):
    """The current rights of a user whose permissions changed; older access tokens can contain more.

    A release whose tokens had no permissions left `permissions` null.
    """

    user_id = models.BigIntegerField(primary_key=True)
    scopes = models.CharField(max_length=200, blank=True)
    changed_at = models.DateTimeField(db_index=True)
    permissions = models.JSONField(null=True)

    def __str__(self) -> str:
        return f"user {self.user_id}: {self.scopes}"


def build_active_condition(now: datetime | Parameter, path: str = "") -> Q:
    """Returns the condition for API keys that are neither revoked nor expired; `path` is the lookup path to them."""
    is_unexpired = Q((f"{path}expires_at", None)) | Q((f"{path}expires_at__gt", now))
    return is_unexpired & Q((f"{path}revoked_at", None))


class APIKey(models.Model):
    """A program's key. Its text is shown once; `digest` is the SHA-256 of the text."""

    name = models.CharField(_("name"), max_length=100)
    owner = models.ForeignKey(
        settings.AUTH_USER_MODEL, models.CASCADE, related_name="api_keys", verbose_name=_("owner")
    )
    prefix = models.CharField(max_length=12, unique=True, editable=False)
    digest = models.CharField(max_length=64, editable=False)
    scopes = models.CharField(_("scopes"), max_length=200)
    created_at = models.DateTimeField(_("created at"), editable=False)
    expires_at = models.DateTimeField(_("expires at"), null=True, blank=True)
    last_used_at = models.DateTimeField(_("last used at"), null=True, editable=False)
    revoked_at = models.DateTimeField(_("revoked at"), null=True, editable=False)
    # The key and the authorization that created this key and that revoke it. Both are set if an app's key created it.
    creator = models.ForeignKey(
        "self", models.CASCADE, null=True, editable=False, related_name="made", db_column="maker_id"
    )
    authorization = models.ForeignKey(Authorization, models.CASCADE, null=True, editable=False)

    class Meta:
        verbose_name, verbose_name_plural = _("API key"), _("API keys")

    def __str__(self) -> str:
        return f"{self.name} (lib_{self.prefix}_…)"


class SecondFactor(models.Model):
    """A user's authenticator app (TOTP, RFC 6238). Users with a second factor enter a code at sign-in.

    Sessions store its id and end when the factor is replaced or turned off.
    """

    id = models.UUIDField(primary_key=True, default=uuid4, editable=False)
    user = models.OneToOneField(settings.AUTH_USER_MODEL, models.CASCADE, related_name="second_factor")
    encrypted_secret = models.CharField(max_length=200)
    created_at = models.DateTimeField()
    # The time step of the last accepted code: each code is valid once.
    last_step = models.BigIntegerField()
    wrong_codes = models.PositiveIntegerField(default=0)
    first_wrong_at = models.DateTimeField(null=True)

    class Meta:
        default_permissions = ()

    def __str__(self) -> str:
        return f"second factor of {self.user}"


class RecoveryCode(models.Model):
    """A code for a user who has lost the app. It is deleted when it is used; `digest` is its SHA-256."""

    factor = models.ForeignKey(SecondFactor, models.CASCADE, related_name="recovery_codes")
    digest = models.CharField(max_length=64)

    class Meta:
        default_permissions = ()

    def __str__(self) -> str:
        return f"recovery code of {self.factor.user}"


class AccountMail(models.Model):
    """A queued mail about an account. Requests write the rows, and a worker sends the mails.

    So the duration of a request does not reveal whether an address belongs to a user.
    """

    class Kind(models.TextChoices):
        RESET = "reset", "forgotten password"
        INVITATION = "invitation", "invitation"
        # Changes to the sign-in, see `oauth.accounts.mails.notify`.
        PASSWORD = "password", "new password"
        ADDRESS = "address", "new address"
        FACTOR_ON = "factor_on", "two-factor sign-in turned on"
        FACTOR_OFF = "factor_off", "two-factor sign-in turned off"

    kind = models.CharField(max_length=10, choices=Kind.choices)
    # A reset mail has no user, but the address that was entered and the network of the client. A notice has the address
    # from before the change.
    user = models.ForeignKey(settings.AUTH_USER_MODEL, models.CASCADE, null=True)
    address = models.CharField(max_length=254, blank=True)
    network = models.CharField(max_length=64, blank=True)
    created_at = models.DateTimeField(db_index=True)
    # The time of the next attempt; null if there is no further attempt.
    due_at = models.DateTimeField(null=True, db_index=True)
    attempts = models.PositiveSmallIntegerField(default=0)
    sent_at = models.DateTimeField(null=True)
    # The language of the page where the mail was requested.
    language = models.CharField(max_length=10, blank=True, db_default="")

    class Meta:
        default_permissions = ()

    def __str__(self) -> str:
        return f"{self.get_kind_display()} of {self.created_at}"


class Profile(models.Model):
    """A user's settings for pages and mails."""

    user = models.OneToOneField(settings.AUTH_USER_MODEL, models.CASCADE, primary_key=True, related_name="profile")
    language = models.CharField(max_length=10)

    class Meta:
        default_permissions = ()

    def __str__(self) -> str:
        return f"{self.language} for {self.user}"
