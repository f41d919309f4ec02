"""Mails that tell people of a change to how they sign in, so that nobody else makes one without their knowledge."""

from typing import Any

from django.contrib.auth.models import User
from django.db.models.signals import pre_save
from django.dispatch import receiver
from django.utils import timezone
from django.utils.translation import get_language

from oauth.models import AccountMail
from oauth.signals import has_new_password, saves_any_of


def notify(user: User, kind: AccountMail.Kind) -> None:
    """Asks for a mail to the address that the person has now; nothing happens without one."""
    if user.email:
        now, language = timezone.now(), get_language() or ""
        AccountMail.objects.create(
            kind=kind, user=user, address=user.email, created_at=now, due_at=now, language=language
        )


@receiver(pre_save, sender=User)
def notify_before_save(instance: User, update_fields: Any, **others: Any) -> None:
    """Wherever the change is made. The mail about a new address goes to the old one."""
    if instance.pk is None or not saves_any_of(update_fields, "password", "email"):
        return
    stored_user = User.objects.filter(pk=instance.pk).first()
    if stored_user is None:
        return
    if stored_user.has_usable_password() and has_new_password(stored_user, instance, update_fields):
        notify(stored_user, AccountMail.Kind.PASSWORD)
    if stored_user.email != instance.email and saves_any_of(update_fields, "email"):
        notify(stored_user, AccountMail.Kind.ADDRESS)
