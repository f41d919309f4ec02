"""What Django tells of people and apps, whoever changes them: no token may do more than its person may."""

from collections.abc import Iterable
from typing import Any

from django.contrib.auth.models import Group, Permission, User
from django.db import transaction
from django.db.models import QuerySet
from django.db.models.signals import m2m_changed, post_delete, post_save, pre_delete, pre_save
from django.dispatch import receiver
from django.utils import timezone
from oauth2_provider.models import Application, Grant

from oauth.models import Authorization
from oauth.tokens import revocations


def revoke_all_access(users: QuerySet[User]) -> None:
    """Ends all that these people granted, codes under way included."""
    with transaction.atomic():
        Grant.objects.filter(user__in=users).delete()
        revocations.revoke_authorizations(Authorization.objects.filter(user__in=users), timezone.now())


@receiver(pre_save, sender=User)
def revoke_before_save(instance: User, update_fields: Any, **others: Any) -> None:
    """Before the change is there: what fails in between leaves apps signed out, never in."""
    before = (
        User.objects.filter(pk=instance.pk).first() if saves_any_of(update_fields, "password", "is_active") else None
    )
    if before and (has_new_password(before, instance, update_fields) or (before.is_active and not instance.is_active)):
        revoke_all_access(User.objects.filter(pk=instance.pk))


@receiver(post_save, sender=User)
def update_rights_after_save(instance: User, created: bool, update_fields: Any, **others: Any) -> None:
    if not created and saves_any_of(update_fields, "is_active", "is_superuser"):
        update_rights([instance.pk])


def saves_any_of(update_fields: Any, *names: str) -> bool:
    """Whether one of these members is saved."""
    return update_fields is None or not set(names).isdisjoint(update_fields)


def has_new_password(before: User, after: User, update_fields: Any) -> bool:
    """Whether it is another one, and not the same in a stronger hash, as Django keeps it at sign-in."""
    unsaid = after._password is None  # type: ignore[attr-defined]  # not in the stubs
    rehashed = unsaid and after.has_usable_password() and set(update_fields or ()) == {"password"}
    return before.password != after.password and not rehashed


@receiver(pre_delete, sender=User)
def revoke_deleted_user(instance: User, **others: Any) -> None:
    revoke_all_access(User.objects.filter(pk=instance.pk))


@receiver(pre_delete, sender=Application)
def revoke_deleted_application(instance: Application, **others: Any) -> None:
    revocations.revoke_authorizations(Authorization.objects.filter(application=instance), timezone.now())


@receiver(m2m_changed, sender=User.groups.through)
@receiver(m2m_changed, sender=User.user_permissions.through)
@receiver(m2m_changed, sender=Group.permissions.through)
def update_rights_of_relation(instance: Any, model: Any, action: str, pk_set: set[int] | None, **others: Any) -> None:
    if action == "pre_clear":
        # Afterwards nobody knows who was in the group.
        instance.were_concerned = list(find_affected_users(instance, model, pk_set))
    elif action == "post_clear":
        update_rights(instance.were_concerned)
    elif action in ("post_add", "post_remove"):
        update_rights(find_affected_users(instance, model, pk_set))


@receiver(pre_delete, sender=Group)
def remember_group_users(instance: Any, **others: Any) -> None:
    instance.were_concerned = list(find_affected_users(instance, Permission, None))


@receiver(post_delete, sender=Group)
def update_rights_of_group(instance: Any, **others: Any) -> None:
    update_rights(instance.were_concerned)


def find_affected_users(instance: Any, model: Any, pk_set: set[int] | None) -> Iterable[int]:
    """The ids of the users whose rights a relation between users, groups and permissions is about; None means all."""
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
