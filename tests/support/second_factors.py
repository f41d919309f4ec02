"""Turns two-factor sign-in on for people, and computes the codes of their phones."""

from datetime import datetime
from typing import NamedTuple

from django.contrib.auth.models import User
from django.utils import timezone

from oauth.accounts import totp
from oauth.models import SecondFactor


class Phone(NamedTuple):
    """A person's app: its secret, and the recovery codes that were shown with it."""

    secret: str
    recovery_codes: list[str]
    factor: SecondFactor

    def show_code(self, steps: int = 0) -> str:
        return compute_code(self.secret, timezone.now(), steps)


def set_up_phone(user: User) -> Phone:
    secret = totp.generate_totp_secret()
    factor, codes = totp.turn_on(user, secret, 0, timezone.now())
    return Phone(secret, codes, factor)


def compute_code(secret: str, now: datetime, steps: int = 0) -> str:
    """The code of now, or of a number of time steps later."""
    return totp.compute_code(secret, int(now.timestamp()) // totp.STEP_SECONDS + steps)


def find_wrong_code(phone: Phone) -> str:
    """A code that the phone shows neither now nor soon."""
    shown = {phone.show_code(steps) for steps in range(-2, 4)}
    return next(
        code for code in ("000000", "111111", "222222", "333333", "444444", "555555", "666666") if code not in shown
    )
