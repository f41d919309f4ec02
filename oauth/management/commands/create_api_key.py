"""Creates an API key."""

from argparse import ArgumentParser
from datetime import datetime, timedelta
from typing import Any

from django.core.exceptions import ValidationError
from django.core.management.base import CommandError
from django.utils import timezone

from library_site.json_lines import write_note
from library_site.management.checked_command import CheckedCommand
from oauth import api_keys
from oauth.management import users
from oauth.scopes import format_scopes, get_user_scopes, parse_scopes
from oauth.server.registration import validate_name

MAX_DAYS = 36_500


class Command(CheckedCommand):
    help = "Makes an API key for a program, and prints it, this once, alone on the last line."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--user", required=True, metavar="USERNAME", help="for whom the program acts")
        parser.add_argument("--scopes", required=True, help='what the key is good for, as "read write"')
        parser.add_argument("--name", default="command line", help="by which its owner knows it")
        parser.add_argument("--expires-in-days", type=int, metavar="N", help="without it, the key lasts until revoked")

    def handle(
        self, *args: Any, user: str, scopes: str, name: str, expires_in_days: int | None, **options: Any
    ) -> None:
        owner, now = users.get_active_user(user), timezone.now()
        try:
            granted_scopes = parse_scopes(scopes)
            if not granted_scopes:
                raise CommandError("Name at least one scope.")
            validate_name(name)
            key, secret = api_keys.create_key(
                owner, name, granted_scopes, now, expires_at=get_expiry(expires_in_days, now)
            )
        except ValidationError as error:
            raise CommandError(" ".join(error.messages)) from error
        except api_keys.TooManyKeys as error:
            raise CommandError(f"{user} has {api_keys.MAX_KEYS_PER_USER} keys; revoke one first.") from error
        if missing_scopes := format_scopes(granted_scopes - get_user_scopes(owner)):
            text = f"{user} may not have these scopes now, and the key is not good for them: {missing_scopes}."
            write_note(self.stderr, text, "WARNING")
        write_note(self.stderr, f"{key}, shown this once:")
        self.stdout.write(secret)


def get_expiry(days: int | None, now: datetime) -> datetime | None:
    """Raises CommandError."""
    if days is None:
        return None
    if not 1 <= days <= MAX_DAYS:
        raise CommandError(f"--expires-in-days takes 1 to {MAX_DAYS}.")
    return now + timedelta(days=days)
