"""Looks for dangerous settings, as each command does when it starts."""

from django.core.management.commands import check

from library_site.management.checked_command import CheckedCommand


class Command(CheckedCommand, check.Command):
    """Django's, which prints a list."""
