"""Deletes an account and the names of its person."""

from argparse import ArgumentParser
from typing import Any

from django.core.management.base import CommandError
from oauth2_provider.models import Application

from library_site.management.checked_command import CheckedCommand
from oauth.management.personal_data import LastSuperuser, forget_person
from oauth.management.users import Person, get_person, require_confirmation
from oauth.models import Authorization

ACCOUNT_ENDS = (
    "The account {} will be deleted, with its API keys, webhooks and apps. What the person did stays in the history of"
    " books, without a name."
)
REMAINS = (
    "What has left the database is not changed: backups, mails, log files, and events that were sent. Events and logs"
    " name no users, but logs have the ids of accounts in addresses of the admin."
)


class Command(CheckedCommand):
    help = "Forgets a person: deletes the account, its access and all names. What the person did stays, of nobody."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("username", metavar="NAME")
        parser.add_argument("--yes", action="store_true", help="do not ask")

    def handle(self, *args: Any, username: str, yes: bool, **options: Any) -> None:
        person = get_person(username)
        if not yes:
            self.stdout.write("\n".join(describe_effects(person)))
            require_confirmation(person.name, "Type the name to forget this person for ever: ")
        try:
            counts = forget_person(person)
        except LastSuperuser as error:
            raise CommandError(f"{username} is the last superuser: create another one first.") from error
        if not counts:
            self.stdout.write(f"Nothing names {username}.")
            return
        self.stdout.write(f"{username} is forgotten.")
        for kind, count in counts.items():
            self.stdout.write(f"{kind}: {count}")
        self.stdout.write(REMAINS)


def describe_effects(person: Person) -> list[str]:
    if not person.user_id:
        return [f"There is no account {person.name}. What deleted accounts of this name left will name nobody."]
    apps = Application.objects.filter(user=person.user_id).order_by("pk")
    return [ACCOUNT_ENDS.format(person.name), *map(describe_app_end, apps)]


def describe_app_end(app: Application) -> str:
    count = Authorization.objects.filter(application=app, ended_at=None).count()
    return f"The app {app} ends, which {count} people use. To keep it, give it another owner in the admin first."
