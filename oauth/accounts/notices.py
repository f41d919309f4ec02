"""Mails about changes to the sign-in, so that people notice a change that they did not make."""

from typing import Any

from django.contrib.auth.models import User
from django.db.models.signals import pre_save
from django.dispatch import receiver
from django.utils import timezone
from django.utils.translation import get_language

from oauth.models import AccountMail
from oauth.signals import has_new_password, saves_any_of


def notify(user: User, kind: AccountMail.Kind) -> None:
    """Queues a mail to the person's current address. Does nothing if there is none."""
    if user.email:
        now, language = timezone.now(), get_language() or ""
        AccountMail.objects.create(
            kind=kind, user=user, address=user.email, created_at=now, due_at=now, language=language
        )


@receiver(pre_save, sender=User)
def notify_before_save(instance: User, update_fields: Any, **others: Any) -> None:
    """Covers every way to change a user. The mail about a new address goes to the old one."""
    if instance.pk is None or not saves_any_of(update_fields, "password", "email"):
        return
    stored_user = User.objects.filter(pk=instance.pk).first()
    if stored_user is None:
        return
    if stored_user.has_usable_password() and has_new_password(stored_user, instance, update_fields):
        notify(stored_user, AccountMail.Kind.PASSWORD)
    if stored_user.email != instance.email and saves_any_of(update_fields, "email"):
        notify(stored_user, AccountMail.Kind.ADDRESS)
