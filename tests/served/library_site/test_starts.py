"""What a process loads when it starts, what it says, and what it refuses."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from library_site.monitoring import metrics_files
from tests.support.documents import list_dependencies
from tests.support.forked_commands import run_forked
from tests.support.server import reserve_port, run_command
from tests.support.settings import REQUIRED_SECRETS
from tests.support.waiting import PROCESS_TIMEOUT


def test_a_process_loads_what_the_requirements_say() -> None:
    """First what any process loads, then a web process."""
    starts = (
        "import django; django.setup(); import django.contrib.admin",
        "import library_site.wsgi, library_site.urls",
    )
    code = "; ".join(f"{start}; print(*sys.modules)" for start in starts)
    environment = os.environ | {"DJANGO_SETTINGS_MODULE": "library_site.settings", "METRICS_TOKEN": ""}
    output = subprocess.run(
        [sys.executable, "-c", f"import sys; {code}"],
        env=environment,
        capture_output=True,
        text=True,
        check=True,
        timeout=PROCESS_TIMEOUT,
    ).stdout
    documented = set[str]()
    for process, loaded in zip(("any process", "a web process"), output.splitlines(), strict=True):
        documented |= {item.name for item in list_dependencies(process)}
        assert {item.name for item in list_dependencies() if item.imports & {*loaded.split()}} == documented, process


EVERYTHING_ON = {"CORS_ALLOWED_ORIGINS": "https://a.example", "API_RATE_LIMIT": "9/minute", "GZIP": "true"}
PATCH = "import rest_framework.views as views; views.APIView.check_throttles = print"


@pytest.mark.parametrize(
    ("variables", "change", "outermost"),
    [(EVERYTHING_ON, "", "function"), ({}, PATCH, "LibraryHandler")],
    ids=["with all settings", "with a patched method"],
)
def test_the_compiled_path_is_on_unless_something_was_changed(
    variables: dict[str, str], change: str, outermost: str
) -> None:
    name = "from library_site.wsgi import application; print(type(application).__name__)"
    code = f"import django; django.setup()\n{change}\n{name}"
    environment = {"DJANGO_SETTINGS_MODULE": "library_site.settings", "LIBRARY_PROCESS": "web", **variables}
    run = subprocess.run(
        [sys.executable, "-c", code],
        env=os.environ | environment,
        capture_output=True,
        text=True,
        check=True,
        timeout=PROCESS_TIMEOUT,
    )
    assert run.stdout == f"{outermost}\n"
    assert ("rest_framework.views.APIView" in run.stderr) == bool(change)


def test_a_refusal_is_one_line(tmp_path: Path) -> None:
    text = tmp_path / "text.sqlite3"
    text.write_text("This is no database.")
    refusals = [
        run_alone("check", PORT="eighty"),
        run_alone("seed_books", "--skip-checks", DATABASE_URL=f"sqlite:///{text}"),
        run_alone("seed_books", "--skip-checks", DATABASE_URL=f"sqlite:///{tmp_path}/x/y"),
    ]
    assert [(refusal.returncode, refusal.stdout, refusal.stderr) for refusal in refusals] == [
        (1, "", "PORT is 'eighty'; it takes a whole number from 1 to 65535.\n"),
        (1, "", f"The database failed: {text}: file is not a database\n"),
        (1, "", f"The database failed: {tmp_path}/x/y: unable to open database file\n"),
    ]
    with reserve_port() as port:
        served = run_alone("serve", DATABASE_URL=f"sqlite:///{text}", PORT=str(port))
    assert (served.returncode, served.stderr.splitlines()[-1:]) == (1, refusals[1].stderr.splitlines())


def test_a_command_names_its_database_once(tmp_path: Path) -> None:
    code = "from django.db import connection as c; c.ensure_connection(); c.close(); c.ensure_connection()"
    run = run_alone("shell", "-v0", "-c", code, DATABASE_URL=f"sqlite:///{tmp_path}/a%20b.sqlite3")
    assert (run.stdout, run.stderr) == ("", f"Database: SQLite, {tmp_path}/a b.sqlite3\n")


def run_alone(*command: str, **environment: str) -> "subprocess.CompletedProcess[str]":
    """Runs a command of manage.py with no other environment variables than these."""
    variables = {"PATH": os.environ["PATH"], **REQUIRED_SECRETS, **environment}
    return run_forked(variables, *command)


OBSERVE_MANY = """
import sys
from prometheus_client import CollectorRegistry
from library_site.http.request_log import ActiveRequest
from library_site.monitoring import metrics, metrics_files
files = {kind: metrics_files.get_metrics_path(metrics.find_directory(), kind) for kind in metrics_files.KINDS}
counts = metrics.get_server_metrics()
counts.sample_threads()
entry = ActiveRequest("OPTIONS", "/", "", 0, None)
for status in range(100, 150):
    counts.observe({}, entry, "r" * 150, status, 0.5)
    used = {kind: int.from_bytes(file.read_bytes()[:4], sys.byteorder) for kind, file in files.items()}
    assert used["counter"] < metrics_files.SERIES_SIZE and used["gauge_livesum"] < metrics_files.SERIES_SIZE, used
    assert used["histogram"] <= len(counts.children) * metrics_files.SERIES_SIZE, used
    assert used["histogram"] <= files["histogram"].stat().st_blocks * 512
print(sorted(file.name for file in metrics.find_directory().iterdir()) == sorted(file.name for file in files.values()))
"""


def test_what_is_counted_has_its_place_on_the_disk_before(tmp_path: Path) -> None:
    """Where a mapped file has a hole, a full disk would end the process."""
    variables = {metrics_files.DIRECTORY_VARIABLE: str(tmp_path)}
    assert run_command(os.environ | variables, "shell", "-v0", "-c", OBSERVE_MANY) == "True\n"
