"""Turns two-factor sign-in off for a person who can give no code."""

from argparse import ArgumentParser
from typing import Any

from django.core.management.base import CommandError

from library_site.management.checked_command import CheckedCommand
from oauth.accounts.totp import turn_off
from oauth.management.users import get_active_user, require_confirmation


class Command(CheckedCommand):
    help = "Turns two-factor sign-in off for a person who lost the phone and the recovery codes; ends the sessions."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("username", metavar="NAME")
        parser.add_argument("--yes", action="store_true", help="do not ask")

    def handle(self, *args: Any, username: str, yes: bool, **options: Any) -> None:
        user = get_active_user(username)
        if not yes:
            self.stdout.write("Whoever knows the password can sign in then. Make sure that the person asked for it.")
            require_confirmation(username, "Type the name to turn two-factor sign-in off: ")
        if not turn_off(user):
            raise CommandError(f"{username} has no second factor.")
        self.stdout.write(f"{username} signs in with the password alone now, and can set up another phone.")
