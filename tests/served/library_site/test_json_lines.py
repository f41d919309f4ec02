"""With LOG_FORMAT=json each line of a process is one object, also before there is a log."""

import json
import os
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from django.core.management.base import OutputWrapper

from library_site.json_lines import JSONLines, write_note
from tests.support.forked_commands import run_forked


def test_each_line_becomes_an_object_and_objects_pass() -> None:
    output = StringIO()
    lines = JSONLines(output, "INFO")
    for text in ("\n  two ", "parts\n\n", '{"a": 1}\n', 'a "quote"'):
        lines.write(text)
    assert len(output.getvalue().splitlines()) == 2
    lines.close_line()
    first, passed, last = map(json.loads, output.getvalue().splitlines())
    assert passed == {"a": 1}
    assert (first["message"], last["message"]) == ("two parts", 'a "quote"')
    assert first.keys() == {"time", "level", "logger", "message", "pid", "instance"}
    assert (first["level"], first["logger"], first["pid"]) == ("INFO", "manage.py", os.getpid())


def test_a_note_on_standard_error_is_no_error() -> None:
    output = StringIO()
    lines: Any = JSONLines(output, "ERROR")
    for stream in (lines, OutputWrapper(lines)):
        write_note(stream, "By the way.")
        write_note(stream, "Look out.", "WARNING")
        stream.write("It failed.\n")
    levels = {line["message"]: line["level"] for line in map(json.loads, output.getvalue().splitlines())}
    assert levels == {"By the way.": "INFO", "Look out.": "WARNING", "It failed.": "ERROR"}
    write_note(OutputWrapper(plain := StringIO()), "By the way.")
    assert plain.getvalue() == "By the way.\n"


def test_commands_write_notes_to_standard_error_as_such() -> None:
    """Django writes what makes a command fail."""
    files = [path for package in ("books", "oauth", "webhooks", "library_site") for path in Path(package).rglob("*.py")]
    assert [path.name for path in files if "stderr.write(" in path.read_text()] == []
    code = "from django.db import connection; connection.ensure_connection()"
    run = run_forked(os.environ | {"LOG_FORMAT": "json"}, "shell", "-v0", "-c", code)
    [database] = map(json.loads, run.stderr.splitlines())
    assert (database["level"], database["message"].partition(":")[0]) == ("INFO", "Database")


@pytest.mark.parametrize(
    ("command", "variables", "part"),
    [
        ("serve", {"ALLOWED_HOSTS": "https://x"}, "ALLOWED_HOSTS is"),
        ("check", {"SECRET_KEY": "x"}, "SECRET_KEY has 1 characters"),
        ("no_such_command", {}, "Unknown command"),
    ],
)
def test_what_a_command_refuses_is_one_object_a_line(command: str, variables: dict[str, str], part: str) -> None:
    environment = os.environ | {"LOG_FORMAT": "json"} | variables
    run = run_forked(environment, command)
    lines = [json.loads(line) for line in run.stderr.splitlines()]
    assert run.returncode != 0
    assert {line["level"] for line in lines if part in line["message"]} == {"ERROR"}
