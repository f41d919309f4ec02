"""Registers an OAuth app."""

from argparse import ArgumentParser
from typing import Any

from django.conf import settings
from django.core.exceptions import ValidationError
from django.core.management.base import CommandError
from oauth2_provider.models import Application

from library_site.json_lines import write_note
from library_site.management.checked_command import CheckedCommand
from oauth.management import users
from oauth.scopes import DEFAULT_SCOPE, parse_scopes
from oauth.server import registration


class Command(CheckedCommand):
    help = "Registers an app that people may let in; prints its client_id and, this once, its client_secret."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--name", required=True, help="what people read when they are asked for consent")
        parser.add_argument(
            "--redirect-uri",
            dest="redirect_uris",
            metavar="URI",
            action="append",
            default=[],
            help="where their browsers go back to: https, or http on their own machine; may be repeated",
        )
        kinds = parser.add_mutually_exclusive_group()
        kinds.add_argument("--public", action="store_true", help="an app that cannot keep a secret, and uses PKCE")
        kinds.add_argument(
            "--own-access", action="store_true", help="a program without a user, with OAUTH_CLIENT_CREDENTIALS"
        )
        parser.add_argument(
            "--scopes", default=DEFAULT_SCOPE, help='what it may be granted, as "read write" (default: read)'
        )
        parser.add_argument("--owner", metavar="USERNAME", help="the developer who keeps it in the admin")

    def handle(
        self, *args: Any, name: str, redirect_uris: list[str], public: bool, scopes: str, owner: str, **options: Any
    ) -> None:
        if options["own_access"] and not settings.OAUTH_CLIENT_CREDENTIALS:
            raise CommandError("--own-access needs OAUTH_CLIENT_CREDENTIALS=true.")
        if not options["own_access"] and not redirect_uris:
            raise CommandError("--redirect-uri is required without --own-access.")
        app = Application(
            name=name,
            client_type=Application.CLIENT_PUBLIC if public else Application.CLIENT_CONFIDENTIAL,
            authorization_grant_type=Application.GRANT_CLIENT_CREDENTIALS if options["own_access"] else "",
            redirect_uris="\n".join(redirect_uris),
            user=users.get_active_user(owner) if owner else None,
        )
        try:
            secret = registration.register_app(app, parse_scopes(scopes))
        except ValidationError as error:
            raise CommandError(" ".join(error.messages)) from error
        self.stdout.write(f"client_id: {app.client_id}")
        if secret:
            write_note(self.stderr, "The secret is shown this once:")
            self.stdout.write(f"client_secret: {secret}")
