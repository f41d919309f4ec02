"""Runs the suite: Django's command of this name, with pytest."""

import os
import sys
from importlib.util import find_spec

from django.core.management.base import BaseCommand


class Command(BaseCommand):
    help = "Runs the suite as `python -m tests` does, with its arguments."

    def run_from_argv(self, argv: list[str]) -> None:
        if not find_spec("pytest"):
            sys.exit("The suite needs packages: pip install --require-hashes -r requirements/dev.txt")
        # The suite chooses the process itself (manage.py).
        environment = {name: value for name, value in os.environ.items() if name != "LIBRARY_PROCESS"}
        os.execve(sys.executable, [sys.executable, "-m", "tests", *argv[2:]], environment)
