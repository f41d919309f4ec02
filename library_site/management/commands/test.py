"""Runs the suite with pytest, and tests of an app beside the library as Django does."""

import os
import sys
from importlib.util import find_spec

from django.apps import apps
from django.core.management.commands import test


class Command(test.Command):
    help = "Runs the suite as `python -m tests` does, with its arguments, or the tests of an app that is named first."

    def run_from_argv(self, argv: list[str]) -> None:
        app = argv[2].partition(".")[0] if argv[2:] else ""
        if app in {config.name.partition(".")[0] for config in apps.get_app_configs()}:
            super().run_from_argv(argv)
            return
        if not find_spec("pytest"):
            sys.exit("The suite needs packages: pip install --require-hashes -r requirements/dev.txt")
        # The suite chooses the process itself (manage.py).
        environment = {name: value for name, value in os.environ.items() if name != "LIBRARY_PROCESS"}
        os.execve(sys.executable, [sys.executable, "-m", "tests", *argv[2:]], environment)
