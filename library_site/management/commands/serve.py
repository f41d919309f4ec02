import os
import sys
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand


class Command(BaseCommand):
    help = "Serves the library on HOST and PORT with WEB_CONCURRENCY processes, until Ctrl-C."

    def handle(self, *args: Any, **options: Any) -> None:
        address = f"http://{settings.HOST}:{settings.PORT}"
        self.stdout.write(
            f"The library   {address}/api/books\n"
            f"Documentation {address}/docs\n"
            f"Admin         {address}/admin/ (the first librarian: .venv/bin/python manage.py createsuperuser)\n"
            "Ctrl-C stops it."
        )
        self.stdout.flush()
        os.execv(sys.executable, granian(settings.HOST, settings.PORT, settings.WEB_CONCURRENCY, settings.WEB_THREADS))


def granian(host: str, port: int, workers: int, threads: int) -> list[str]:
    """The server's command line. Threads overlap the commits of writers; a worker that dies is replaced."""
    options = {
        "--interface": "wsgi",
        "--host": host,
        "--port": port,
        "--workers": workers,
        "--blocking-threads": threads,
        "--log-level": "error",
    }
    words = [str(word) for option in options.items() for word in option]
    return [
        sys.executable,
        "-m",
        "granian",
        *words,
        "--no-ws",
        "--respawn-failed-workers",
        "library_site.wsgi:application",
    ]
