#!/usr/bin/env python
"""The operators' door: `manage.py help` lists the commands."""

import os
import signal

# The system has no default for the first process of a container: SIGTERM would be lost until the command reacts to it.
# It comes before the imports, which take longer than Python's own start. `--init` of docker and podman covers that too.
if os.getpid() == 1:
    signal.signal(signal.SIGTERM, lambda number, _: os._exit(128 + number))

import subprocess
import sys

import django
from django.core.exceptions import ImproperlyConfigured
from django.core.management import execute_from_command_line
from django.db import DatabaseError, DataError, IntegrityError
from django.db.backends.signals import connection_created

from library_site.db.connections import name_database_once
from library_site.deployment import env
from library_site.deployment.releases import VERSION
from library_site.json_lines import wrap_streams

# The other commands wait for the database as long as it takes (LIBRARY_PROCESS in library_site/settings.py).
PROCESSES = {
    "serve": "web",
    "runserver": "web",
    "deliver_webhooks": "worker",
    "run_operations": "worker",
    # Like other commands, but its checks find what would stop the server and the workers.
    "doctor": "doctor",
}


def deploy() -> None:
    """Runs `deploy` in a process of its own: this one must not read its settings before there is a secret key."""
    if status := subprocess.run([sys.executable, sys.argv[0], "deploy", "--skip-checks"], check=False).returncode:
        sys.exit(status)


if __name__ == "__main__":
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "library_site.settings")
    os.environ["LIBRARY_PROCESS"] = process = PROCESSES.get("".join(sys.argv[1:2]), "command")
    is_command = process not in ("web", "worker")
    if is_command:
        connection_created.connect(name_database_once)
    if os.environ.get("LOG_FORMAT") == "json":
        wrap_streams(with_output=not is_command)
    try:
        if sys.argv[1:] == ["--version"]:
            sys.stdout.write(f"Library API {VERSION}, Django {django.get_version()}\n")
            sys.exit()
        if sys.argv[1:2] == ["serve"] and env.flag("SET_UP", default=False):
            deploy()
        if sys.argv[1:2] == ["shell"]:
            # Django would start one without settings.
            django.setup()
        execute_from_command_line(sys.argv)
    except ImproperlyConfigured as error:
        sys.exit(f"{error}")
    except ModuleNotFoundError as error:
        settings = os.environ["DJANGO_SETTINGS_MODULE"]
        if not f"{settings}.".startswith(f"{error.name}."):
            raise
        sys.exit(f"DJANGO_SETTINGS_MODULE is {settings}, which does not exist here. Unset that of another project.")
    except (DatabaseError, PermissionError) as error:
        # A violated constraint is an error of the code, whose place matters.
        if "--traceback" in sys.argv or isinstance(error, (IntegrityError, DataError)):
            raise
        if isinstance(error, PermissionError):
            sys.exit(f"{error.filename}: {error.strerror}.")
        sys.exit(f"The database failed: {' '.join(str(error).split())}")
    except KeyboardInterrupt:
        # 128 and the number of SIGINT, as shells say it.
        sys.exit(130)
