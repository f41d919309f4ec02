#!/usr/bin/env python
"""The operators' door: `manage.py help` lists the commands."""

import os
import sys

from django.core.management import execute_from_command_line

# The other commands wait for the database as long as it takes (LIBRARY_PROCESS in library_site/settings.py).
PROCESSES = {"serve": "web", "runserver": "web", "deliver_webhooks": "worker"}

if __name__ == "__main__":
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "library_site.settings")
    os.environ["LIBRARY_PROCESS"] = PROCESSES.get("".join(sys.argv[1:2]), "command")
    try:
        execute_from_command_line(sys.argv)
    except KeyboardInterrupt:
        # 128 and the number of SIGINT, as shells say it.
        sys.exit(130)
