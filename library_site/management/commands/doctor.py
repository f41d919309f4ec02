"""Says what is wrong with the library, and where to read about it."""

import sys
from typing import Any

from django.core.management.base import BaseCommand
from django.utils import timezone

from library_site.deployment.diagnosis import OK, PROBLEM, diagnose


class Command(BaseCommand):
    help = "Runs the checks of all processes, and looks at database, queues, clock, disks and backup; changes nothing."
    # They are among its findings.
    requires_system_checks = []

    def handle(self, *args: Any, **options: Any) -> None:
        """Exits with 1 if there is a problem."""
        has_problem = False
        for level, check, text, section in diagnose(timezone.now()):
            place = "" if level == OK else f" (docs/operations/{section})"
            self.stdout.write(f"{level:8} {check:11} {text}{place}")
            has_problem |= level == PROBLEM
        if has_problem:
            sys.exit(1)
