"""Receivers of changes to users, groups and apps. They revoke access, so that no token can do more than its user, and
tell people of changes to their sign-in.
"""

from collections.abc import Iterable
from typing import Any

from django.contrib.auth.models import Group, Permission, User
from django.db import transaction
from django.db.models import Q, QuerySet
from django.db.models.signals import m2m_changed, post_delete, post_save, pre_delete, pre_save
from django.dispatch import receiver
from django.utils import timezone
from oauth2_provider.models import Application, Grant

from oauth.accounts.mails import notify
from oauth.issuers import revoke_issued
from oauth.models import AccountMail, APIKey, Authorization
from oauth.tokens import revocations


def revoke_all_access(users: QuerySet[User]) -> None:
    """Ends all authorizations of these users, and deletes unused codes."""
    with transaction.atomic():
        Grant.objects.filter(user__in=users).delete()
        revocations.revoke_authorizations(Authorization.objects.filter(user__in=users), timezone.now())


@receiver(pre_save, sender=User)
def end_access_before_save(instance: User, update_fields: Any, **others: Any) -> None:
    """Runs before the change is saved: after a failure, access ends too early, but never too late. The mail about a new
    address goes to the old one.
    """
    is_due = instance.pk is not None and saves_any_of(update_fields, "password", "is_active", "email")
    stored_user = User.objects.filter(pk=instance.pk).first() if is_due else None
    if stored_user is None:
        return
    is_new_password = has_new_password(stored_user, instance, update_fields)
    is_deactivated = stored_user.is_active and not instance.is_active and saves_any_of(update_fields, "is_active")
    if is_new_password or is_deactivated:
        revoke_all_access(User.objects.filter(pk=instance.pk))
    if is_new_password and stored_user.has_usable_password():
        notify(stored_user, AccountMail.Kind.PASSWORD)
    if stored_user.email != instance.email and saves_any_of(update_fields, "email"):
        notify(stored_user, AccountMail.Kind.ADDRESS)


@receiver(post_save, sender=User)
def update_rights_after_save(instance: User, created: bool, update_fields: Any, **others: Any) -> None:
    if not created and saves_any_of(update_fields, "is_active", "is_superuser"):
        update_rights([instance.pk])
        if not instance.is_active:
            # Those of the user's apps that act for themselves. `authorize_app` locks the user first, too.
            own_access = Authorization.objects.filter(user=None, application__user=instance.pk)
            revocations.revoke_authorizations(own_access, timezone.now())


def saves_any_of(update_fields: Any, *names: str) -> bool:
    return update_fields is None or not set(names).isdisjoint(update_fields)


def has_new_password(stored_user: User, user: User, update_fields: Any) -> bool:
    """Whether the password itself changes: Django can upgrade the hash at sign-in."""
    is_hash_only = user._password is None  # type: ignore[attr-defined]  # not in the stubs
    is_rehash = is_hash_only and user.has_usable_password() and set(update_fields or ()) == {"password"}
    return stored_user.password != user.password and not is_rehash and saves_any_of(update_fields, "password")


@receiver(pre_delete, sender=User)
def revoke_deleted_user(instance: User, **others: Any) -> None:
    revoke_all_access(User.objects.filter(pk=instance.pk))


@receiver(pre_delete, sender=Application)
def revoke_deleted_application(instance: Application, **others: Any) -> None:
    revocations.revoke_authorizations(Authorization.objects.filter(application=instance), timezone.now())


@receiver(pre_delete, sender=APIKey)
def announce_deleted_key(instance: APIKey, **others: Any) -> None:
    revoke_issued(Q(creator=instance.pk))


@receiver(pre_delete, sender=Authorization)
def announce_deleted_authorization(instance: Authorization, **others: Any) -> None:
    revoke_issued(Q(authorization=instance.pk))


@receiver(m2m_changed, sender=User.groups.through)
@receiver(m2m_changed, sender=User.user_permissions.through)
@receiver(m2m_changed, sender=Group.permissions.through)
def update_rights_of_relation(instance: Any, model: Any, action: str, pk_set: set[int] | None, **others: Any) -> None:
    if action == "pre_clear":
        # After the change, the members of the group are no longer in the database.
        instance.affected_users = list(list_affected_users(instance, model, pk_set))
    elif action == "post_clear":
        update_rights(instance.affected_users)
    elif action in ("post_add", "post_remove"):
        update_rights(list_affected_users(instance, model, pk_set))


@receiver(pre_delete, sender=Group)
def remember_group_users(instance: Any, **others: Any) -> None:
    instance.affected_users = list(list_affected_users(instance, Permission, None))


@receiver(post_delete, sender=Group)
def update_rights_of_group(instance: Any, **others: Any) -> None:
    update_rights(instance.affected_users)


def list_affected_users(instance: Any, model: Any, pk_set: set[int] | None) -> Iterable[int]:
    """Returns the ids of users whose permissions depend on a changed relation; `pk_set` None means all its rows."""
    if isinstance(instance, User):
        return [instance.pk]
    if model is User:
        return instance.user_set.values_list("pk", flat=True) if pk_set is None else pk_set
    groups = Group.objects.filter(pk=instance.pk) if isinstance(instance, Group) else instance.group_set.all()
    if model is Group and pk_set is not None:
        groups = Group.objects.filter(pk__in=pk_set)
    return User.objects.filter(groups__in=groups).values_list("pk", flat=True)


def update_rights(pks: Iterable[int]) -> None:
    revocations.record_changed_rights(User.objects.filter(pk__in=list(pks)), timezone.now())
