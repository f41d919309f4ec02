"""Mails to people about their accounts. Requests write them to a queue, and `deliver_webhooks` sends them."""

import logging
from datetime import datetime, timedelta
from smtplib import SMTPException
from typing import Any
from urllib.parse import urlencode

from django.conf import settings
from django.contrib.auth.forms import PasswordResetForm
from django.contrib.auth.models import User
from django.contrib.auth.tokens import PasswordResetTokenGenerator, default_token_generator
from django.core import signing
from django.core.mail import send_mail
from django.db.models import F
from django.template.loader import render_to_string
from django.urls import reverse
from django.utils import timezone
from django.utils.crypto import constant_time_compare
from django.utils.encoding import force_bytes
from django.utils.http import urlsafe_base64_encode
from django.utils.translation import get_language, override

from library_site.admin.moments import localize_moment, write_moment
from library_site.jobs.retries import RetrySchedule
from oauth.accounts.languages import find_language
from oauth.credentials import sha256_hex
from oauth.models import AccountMail

log = logging.getLogger(__name__)

# More mails to one mailbox would only annoy its owner.
MAX_MAILS_PER_ADDRESS, MAX_MAILS_PER_NETWORK, MAIL_PERIOD = 3, 20, timedelta(hours=1)
BATCH = 20
INVITATION_DAYS = 7


class InvitationTokenGenerator(PasswordResetTokenGenerator):
    """The tokens in the links of invitations. A sign-in or a new password or mail address invalidates them.

    They have their own lifetime, longer than PASSWORD_RESET_TIMEOUT: an invitation may wait in a mailbox.
    """

    key_salt = "oauth.accounts.invitation"

    def make_token(self, user: Any) -> str:
        return signing.dumps(self.hash_state(user), salt=self.key_salt)

    def check_token(self, user: Any, token: str | None) -> bool:
        try:
            state = signing.loads(token or "", salt=self.key_salt, max_age=INVITATION_DAYS * 24 * 3600)
        except signing.BadSignature:
            return False
        return constant_time_compare(state, self.hash_state(user))

    def hash_state(self, user: Any) -> str:
        return sha256_hex(self._make_hash_value(user, 0))


invitation_tokens = InvitationTokenGenerator()
# The mails with a link to a password form, and the tokens of the link. All others lead to `password-reset`.
PASSWORD_FORMS = {
    AccountMail.Kind.RESET: ("accounts:new-password", default_token_generator),
    AccountMail.Kind.INVITATION: ("accounts:invitation", invitation_tokens),
}
# After the last failure the mail is not sent.
RETRIES = RetrySchedule((60, 300, 1200, 3600))


class TooManyMails(Exception):
    """One network requested too many mails."""


def request_reset(address: str, network: str, now: datetime) -> None:
    """Queues a reset mail for this address. The result does not reveal whether a user has it. Raises TooManyMails.

    A request is counted before the limit is checked, so concurrent requests cannot exceed the limit together.
    """
    kind, address = AccountMail.Kind.RESET, normalize_address(address)
    mail = AccountMail.objects.create(
        kind=kind, address=address, network=network, created_at=now, language=get_language() or ""
    )
    recent = AccountMail.objects.filter(kind=kind, created_at__gt=now - MAIL_PERIOD)
    if recent.filter(network=network).count() > MAX_MAILS_PER_NETWORK:
        mail.delete()
        raise TooManyMails
    if recent.filter(address=address).count() > MAX_MAILS_PER_ADDRESS:
        mail.delete()
    else:
        AccountMail.objects.filter(pk=mail.pk).update(due_at=now)


def normalize_address(address: str) -> str:
    return address.strip().casefold()[:254]


def queue_mail(user: User, kind: AccountMail.Kind, now: datetime, address: str = "") -> None:
    """Without an address, the mail goes to the one that the person has when it is sent."""
    language = get_language() or ""
    AccountMail.objects.create(kind=kind, user=user, address=address, created_at=now, due_at=now, language=language)


def invite(user: User, now: datetime) -> None:
    queue_mail(user, AccountMail.Kind.INVITATION, now)


def notify(user: User, kind: AccountMail.Kind) -> None:
    """Tells the person's current address of a change to the sign-in, which the person may not have made."""
    if user.email:
        queue_mail(user, kind, timezone.now(), user.email)


def send_due(now: datetime) -> int:
    """Sends the mails that are due. Returns their number. Must not run in a transaction: a mail server can be slow."""
    return sum(
        send_account_mail(mail, now)
        for mail in AccountMail.objects.filter(due_at__lte=now).order_by("due_at")[:BATCH]
        if claim(mail, now)
    )


def claim(mail: AccountMail, now: datetime) -> bool:
    """Schedules the next attempt as if this one failed. Returns false if another worker claimed the mail first."""
    attempt = mail.attempts + 1
    due_at = None if RETRIES.is_last(attempt) else now + RETRIES.get_delay(attempt)
    own = AccountMail.objects.filter(pk=mail.pk, due_at=mail.due_at)
    return bool(own.update(attempts=F("attempts") + 1, due_at=due_at))


def send_account_mail(mail: AccountMail, now: datetime) -> bool:
    """Returns whether the mail server accepted the mail. Failures are logged and retried later."""
    try:
        for user, address in list_recipients(mail):
            with override(find_language(user, mail.language)):
                send_mail(*write_account_mail(AccountMail.Kind(mail.kind), user, mail.created_at), None, [address])
    except (SMTPException, OSError, ValueError) as error:
        log.warning("A mail about an account could not be sent: %s", type(error).__name__)
        return False
    AccountMail.objects.filter(pk=mail.pk).update(sent_at=now, due_at=None)
    return True


def list_recipients(mail: AccountMail) -> list[tuple[User, str]]:
    """Returns users and addresses. Several users can have the same address.

    A reset mail goes only to users who have a password; all others need an invitation.
    """
    if mail.kind == AccountMail.Kind.RESET:
        return [(user, user.email) for user in PasswordResetForm().get_users(mail.address)]
    users = User.objects.filter(accountmail=mail, is_active=True)
    return [(user, mail.address or user.email) for user in users if mail.address or user.email]


def write_account_mail(kind: AccountMail.Kind, user: User, at: datetime) -> tuple[str, str]:
    """Returns subject and text. The link is built from PUBLIC_URL: a request could name any host.

    `at` is when the mail was requested.
    """
    page, tokens = PASSWORD_FORMS.get(kind, ("accounts:password-reset", None))
    link = f"{settings.PUBLIC_URL}{reverse(page)}"
    if tokens:
        query = {"uid": urlsafe_base64_encode(force_bytes(user.pk)), "token": tokens.make_token(user)}
        link += f"?{urlencode(query)}"
    context = {
        "user": user,
        "at": write_moment(localize_moment(at)),
        "link": link,
        "library": settings.PUBLIC_URL,
        "sign_in": f"{settings.PUBLIC_URL}{reverse('accounts:login')}",
        "minutes": settings.PASSWORD_RESET_TIMEOUT // 60,
        "days": INVITATION_DAYS,
    }
    subject, _, text = render_to_string(f"accounts/mails/{kind}.txt", context).partition("\n")
    return subject, text.lstrip()
