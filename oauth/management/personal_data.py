"""Exports and deletes the personal data of a user.

The modules in PERSONAL_DATA do the same for other apps, with the functions `export_data` and `forget`.
"""

from collections import Counter
from collections.abc import Iterator
from importlib import import_module
from typing import Any

from axes.models import AccessAttempt
from django.apps import apps
from django.conf import settings
from django.contrib.admin.models import LogEntry
from django.contrib.auth.models import User
from django.contrib.contenttypes.models import ContentType
from django.contrib.sessions.models import Session
from django.db import transaction
from django.db.models import Count, F, Q, QuerySet
from django.utils import timezone
from oauth2_provider.models import AccessToken, Application, Grant, RefreshToken

from oauth import api_keys
from oauth.accounts.mails import normalize_address
from oauth.accounts.sessions import list_session_keys
from oauth.issuers import revoke_issued
from oauth.management.users import Person
from oauth.models import AccountMail, APIKey, Authorization, ChangedRights, Profile, SecondFactor
from oauth.passwords.lockout import USER_PREFIX
from oauth.signals import revoke_all_access

ACCOUNT_COLUMNS = (
    "id", "username", "first_name", "last_name", "email", "is_active", "is_staff", "is_superuser", "date_joined",
    "last_login",
)  # fmt: skip
EXPORTED_KEY_COLUMNS = (
    "id", "name", "prefix", "scopes", "created_at", "expires_at", "last_used_at", "revoked_at", "authorization_id",
)  # fmt: skip
APP_COLUMNS = ("client_id", "name", "client_type", "redirect_uris", "created", "updated")
MAIL_COLUMNS = ("kind", "address", "network", "created_at", "sent_at", "language")
AUTHORIZATION_COLUMNS = ("id", "scopes", "created_at", "refreshed_at", "ended_at")
# Of entries of the admin log, which keep the title of a deleted object.
ANONYMOUS_TITLE = "forgotten"


class LastSuperuser(Exception):
    """The last superuser: without this account, no user could grant permissions."""


def export_person(person: Person) -> Iterator[tuple[str, Any]]:
    """Yields names and values of a JSON object. An iterator as a value stands for an array that can be long."""
    yield from export_data(person)
    for name in settings.PERSONAL_DATA:
        yield from import_module(name).export_data(person)


def export_data(person: Person) -> Iterator[tuple[str, Any]]:
    user_id = person.user_id
    yield "account", export_account(user_id)
    yield "api_keys", list(APIKey.objects.filter(owner=user_id).order_by("pk").values(*EXPORTED_KEY_COLUMNS))
    yield "apps", list(Application.objects.filter(user=user_id).order_by("pk").values(*APP_COLUMNS))
    authorizations = Authorization.objects.filter(user=user_id).order_by("created_at")
    app_columns = {"app": F("application__name"), "client_id": F("application__client_id")}
    yield "authorizations", list(authorizations.values(*AUTHORIZATION_COLUMNS, **app_columns))
    for field, model in (("codes", Grant), ("access_tokens", AccessToken), ("refresh_tokens", RefreshToken)):
        yield field, model.objects.filter(user=user_id).count()
    yield "changed_rights", list(ChangedRights.objects.filter(pk=user_id).values("scopes", "permissions", "changed_at"))
    factors = SecondFactor.objects.filter(user=user_id).annotate(recovery_code_count=Count("recovery_codes"))
    yield "second_factor", factors.values("created_at", "wrong_codes", "recovery_code_count").first()
    yield "mails", list(list_mails(user_id).order_by("pk").values(*MAIL_COLUMNS))
    yield "sessions", len(list_session_keys(user_id))
    columns = {"address": F("ip_address"), "count": F("failures_since_start"), "last_at": F("attempt_time")}
    yield "failed_sign_ins", list(list_attempts(person).values(**columns))
    yield "admin_log", map(export_entry, list_log_entries(person).order_by("pk").iterator())


def export_account(user_id: int) -> dict[str, Any] | None:
    account = User.objects.filter(pk=user_id).values(*ACCOUNT_COLUMNS).first()
    if account is None:
        return None
    user = User(pk=user_id)
    permissions = user.user_permissions.order_by("pk").values_list("content_type__app_label", "codename")
    profile = Profile.objects.filter(user=user_id).first()
    return {
        **account,
        "language": profile and profile.language,
        "groups": list(user.groups.order_by("name").values_list("name", flat=True)),
        "permissions": [".".join(names) for names in permissions],
    }


def list_log_entries(person: Person) -> QuerySet[LogEntry]:
    return LogEntry.objects.select_related("content_type").filter(
        Q(user=person.user_id) | build_about_condition(person)
    )


def build_about_condition(person: Person) -> Q:
    """The condition for entries about accounts with this name and their grants, also if these are deleted."""
    accounts, authorizations = (
        Q(content_type=ContentType.objects.get_for_model(model)) for model in (User, Authorization)
    )
    is_account = Q(object_id=str(person.user_id)) | Q(object_repr=person.name)
    return (accounts & is_account) | (authorizations & Q(object_repr__endswith=f" for {person.name}"))


def export_entry(entry: LogEntry) -> dict[str, Any]:
    return {
        "at": entry.action_time,
        "action": entry.get_action_flag_display(),
        "type": entry.content_type and entry.content_type.model,
        "object": entry.object_repr,
        "message": entry.get_change_message(),
    }


def list_mails(user_id: int) -> QuerySet[AccountMail]:
    addresses = User.objects.filter(pk=user_id).exclude(email="").values_list("email", flat=True)
    is_address = Q(address__in=[normalize_address(address) for address in addresses])
    return AccountMail.objects.filter(Q(user=user_id) | is_address)


def list_attempts(person: Person) -> QuerySet[AccessAttempt]:
    return AccessAttempt.objects.filter(username=f"{USER_PREFIX}{person.name}")


def forget_person(person: Person) -> Counter[str]:
    """Deletes the account and removes its name everywhere; the user's changes stay. Returns numbers of rows by name.

    While the account is locked, no new row can refer to it: see `books.history.actors`. Raises LastSuperuser.
    """
    session_keys = list_session_keys(person.user_id)
    with transaction.atomic():
        end_access(person.user_id)
        lock_account(person.user_id)
        counts: Counter[str] = Counter()
        for name in settings.PERSONAL_DATA:
            counts += import_module(name).forget(person)
        counts += forget(person)
        counts["sessions"] = Session.objects.filter(pk__in=session_keys).delete()[0]
    return +counts


def end_access(user_id: int) -> None:
    """Revokes the account's authorizations and keys, in the lock order of `lock_issuer`."""
    revoke_all_access(User.objects.filter(pk=user_id))
    api_keys.revoke_keys(APIKey.objects.filter(owner=user_id).order_by("pk"), timezone.now())
    revoke_issued(Q(owner=user_id))


def lock_account(user_id: int) -> None:
    """Also locks all superusers, so that two commands cannot delete the last two. Raises LastSuperuser."""
    users = User.objects.filter(Q(pk=user_id) | Q(is_superuser=True, is_active=True)).order_by("pk")
    superusers = [user.pk for user in users.select_for_update() if user.is_superuser and user.is_active]
    if superusers == [user_id]:
        raise LastSuperuser


def forget(person: Person) -> Counter[str]:
    user_id = person.user_id
    entries = remove_titles(LogEntry.objects.filter(build_about_condition(person)))
    entries += remove_titles(list_entries(APIKey.objects.filter(owner=user_id)))
    entries += remove_titles(list_entries(Application.objects.filter(user=user_id)))
    entries += remove_titles(list_entries(Authorization.objects.filter(user=user_id)))
    attempts, _ = list_attempts(person).delete()
    mails, _ = list_mails(user_id).delete()
    _, deleted = User.objects.filter(pk=user_id).delete()
    models = [(apps.get_model(label)._meta, count) for label, count in deleted.items()]
    return Counter(
        {
            "titles in the log of the admin": entries,
            "failed sign-ins": attempts,
            "mails about passwords": mails,
            **{str(model.verbose_name_plural): count for model, count in models if not model.auto_created},
        }
    )


def list_entries(rows: QuerySet[Any]) -> QuerySet[LogEntry]:
    """Returns the entries about these objects. The log stores ids as strings, and has entries of few objects."""
    entries = LogEntry.objects.filter(content_type=ContentType.objects.get_for_model(rows.model))
    logged_pks = rows.filter(pk__in=set(entries.values_list("object_id", flat=True))).values_list("pk", flat=True)
    return entries.filter(object_id__in=[str(pk) for pk in logged_pks])


def remove_titles(entries: QuerySet[LogEntry]) -> int:
    """Removes the titles. Returns the number of entries."""
    return entries.update(object_repr=ANONYMOUS_TITLE)
