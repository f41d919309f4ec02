"""Second factors: codes of an authenticator app (TOTP, RFC 6238), and recovery codes in case it is lost."""

import logging
import os
from base64 import b32decode, b32encode
from datetime import datetime, timedelta
from urllib.parse import quote, urlencode

from django.conf import settings
from django.contrib.auth.models import User
from django.db import transaction
from django.utils.crypto import constant_time_compare
from django_otp.oath import hotp

from library_site import encryption
from oauth.accounts.mails import notify
from oauth.credentials import sha256_hex
from oauth.models import AccountMail, RecoveryCode, SecondFactor

log = logging.getLogger(__name__)

PURPOSE = "second factor"
ISSUER = "Library"
STEP_SECONDS = 30
# How many time steps a code may be off: clocks differ, and people type slowly.
TOLERANCE = 1
SECRET_BYTES, RECOVERY_CODE_BYTES = 20, 10
RECOVERY_CODE_COUNT = 10
# From all addresses together. After that only recovery codes are accepted: an attacker with the password can neither
# guess for ever nor lock the owner out.
MAX_WRONG_CODES, WRONG_CODES_PERIOD = 20, timedelta(hours=1)


class TooManyWrongCodes(Exception):
    """Codes of the app are rejected for a while."""


def is_demanded(user: User) -> bool:
    """Whether this user must have a second factor."""
    return settings.TWO_FACTOR_FOR_STAFF and user.is_staff


def find_factor(user: User) -> SecondFactor | None:
    return SecondFactor.objects.filter(user=user).first()


def generate_totp_secret() -> str:
    """Returns the secret in base32, as authenticator apps expect it."""
    return b32encode(os.urandom(SECRET_BYTES)).decode()


def build_uri(secret: str, username: str) -> str:
    label = quote(f"{ISSUER}:{username}")
    return f"otpauth://totp/{label}?{urlencode({'secret': secret, 'issuer': ISSUER})}"


def find_step(secret: str, code: str, now: datetime, last_step: int = 0) -> int | None:
    """Returns the time step of this code, if the code is neither used nor expired."""
    current_step = int(now.timestamp()) // STEP_SECONDS
    for step in range(max(current_step - TOLERANCE, last_step + 1), current_step + TOLERANCE + 1):
        if constant_time_compare(compute_code(secret, step), code):
            return step
    return None


def compute_code(secret: str, step: int) -> str:
    return f"{hotp(b32decode(secret), step):06}"


@transaction.atomic
def turn_on(user: User, secret: str, step: int, now: datetime) -> tuple[SecondFactor, list[str]]:
    """Replaces an earlier factor. Returns the factor and its recovery codes."""
    User.objects.select_for_update().get(pk=user.pk)
    SecondFactor.objects.filter(user=user).delete()
    encrypted_secret = encryption.encrypt(secret, PURPOSE)
    factor = SecondFactor.objects.create(user=user, encrypted_secret=encrypted_secret, created_at=now, last_step=step)
    notify(user, AccountMail.Kind.FACTOR_ON)
    return factor, renew_recovery_codes(factor)


@transaction.atomic
def turn_off(user: User) -> bool:
    """Also ends the user's sessions. Returns false if there was no factor."""
    count, _ = SecondFactor.objects.filter(user=user).delete()
    if count:
        notify(user, AccountMail.Kind.FACTOR_OFF)
    return bool(count)


@transaction.atomic
def renew_recovery_codes(factor: SecondFactor) -> list[str]:
    """Replaces all recovery codes. Only digests of the new codes are stored."""
    codes = [b32encode(os.urandom(RECOVERY_CODE_BYTES)).decode().lower() for _ in range(RECOVERY_CODE_COUNT)]
    SecondFactor.objects.select_for_update().get(pk=factor.pk)
    factor.recovery_codes.all().delete()
    RecoveryCode.objects.bulk_create([RecoveryCode(factor=factor, digest=sha256_hex(code)) for code in codes])
    return ["-".join(code[start : start + 4] for start in range(0, len(code), 4)) for code in codes]


@transaction.atomic
def use_recovery_code(user: User, code: str) -> SecondFactor | None:
    """Returns the user's factor if this is one of its recovery codes, and deletes the code."""
    digest = sha256_hex(normalize_code(code).lower())
    factor = SecondFactor.objects.select_for_update().filter(user=user).first()
    count, _ = RecoveryCode.objects.filter(factor=factor, digest=digest).delete() if factor else (0, {})
    return factor if count else None


@transaction.atomic
def use_code(user: User, code: str, now: datetime) -> SecondFactor | None:
    """Returns the user's factor if the code is valid. A code is accepted once. Raises TooManyWrongCodes."""
    factor = SecondFactor.objects.select_for_update().filter(user=user).first()
    if factor is None:
        return None
    if factor.first_wrong_at is None or factor.first_wrong_at <= now - WRONG_CODES_PERIOD:
        factor.wrong_codes, factor.first_wrong_at = 0, now
    if factor.wrong_codes >= MAX_WRONG_CODES:
        raise TooManyWrongCodes
    step = find_step(read_secret(factor), normalize_code(code), now, factor.last_step)
    record_outcome(factor, step)
    return factor if step else None


def record_outcome(factor: SecondFactor, step: int | None) -> None:
    if step:
        factor.last_step, factor.wrong_codes = step, 0
    else:
        factor.wrong_codes += 1
    if factor.wrong_codes == MAX_WRONG_CODES:
        log.warning("Too many wrong sign-in codes: someone may know the password of user %s.", factor.user_id)
    factor.save()


def read_secret(factor: SecondFactor) -> str:
    """Raises DecryptionError."""
    return encryption.decrypt(factor.encrypted_secret, PURPOSE)


def normalize_code(code: str) -> str:
    """Removes spaces and hyphens: users type them or leave them out."""
    return "".join(character for character in code if character.isalnum())
