"""The file of settings is read as systemd reads it, and nothing in it is run."""

import ctypes
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given, reject
from hypothesis import strategies as st

from library_site.environment_file import UnreadableVariables, parse_variables
from tests.support.waiting import PROCESS_TIMEOUT

ROOT = Path(__file__).parents[3]
LIBRARY = next(Path("/usr/lib").glob("*/systemd/libsystemd-shared-*.so"), None)
FAILOVER_URL = "postgresql://u:p%24w@h1,h2/db?target_session_attrs=read-write&connect_timeout=2"
# What of the script is elsewhere in a test, which is not root and has no user named library.
PLACES = {
    "/etc/library/environment": "{folder}/environment",
    "/opt/library": "{folder}",
    "runuser -u library --": "env",
}
# Each with what systemd.exec(5) says of it.
FILES = {
    "": {},
    "A=1\nB = 2 \r\n  C=3": {"A": "1", "B": "2", "C": "3"},
    f"A={FAILOVER_URL}": {"A": FAILOVER_URL},
    "A=one two; reboot\nB=$A`id`$(id)": {"A": "one two; reboot", "B": "$A`id`$(id)"},
    "# no\n; no\n\nno\nA=1 # yes": {"A": "1 # yes"},
    "A=1\nA=2": {"A": "2"},
    "A=\nB=''": {"A": "", "B": ""},
    "A=a\\\n  b\\\\\\$\\ ": {"A": "a  b\\$ "},
    'A=it\'s "so"': {"A": 'it\'s "so"'},
    "A='it\\n is $x'": {"A": "it\\n is $x"},
    "A='two\nlines'\nB=1": {"A": "two\nlines", "B": "1"},
    'A="\\"\\\\\\`\\$\\n\\\n"': {"A": '"\\`$\\n'},
    "A='a' \"b\" c' \nB=1": {"A": "abc'", "B": "1"},
    "A='never\nB=closed": {"A": "never\nB=closed"},
}
PARTS = ["\nA=", "\nB =", "'", '"', "\\", "\n", "\r", " ", "\t", "#", "$", "&", "x", "é"]
# What systemd reads in two ways, or not at all.
UNREADABLE = {
    "A=1\nexport B=2": "at line 2, systemd ignores 'export B'",
    "A=1\n1B=2": "at line 2, systemd ignores '1B'",
    "# so\n# this \\\nA=1": "the comment at line 2 ends with a backslash",
    "A=1\0": "a NUL",
}


def test_a_file_is_read_by_the_rules_of_systemd() -> None:
    assert {text: parse_variables(text) for text in FILES} == FILES


def test_what_systemd_would_not_read_is_refused() -> None:
    for text, reason in UNREADABLE.items():
        with pytest.raises(UnreadableVariables, match=reason):
            parse_variables(text)


@pytest.mark.skipif(LIBRARY is None, reason="systemd is missing")
@given(parts=st.lists(st.sampled_from(PARTS)))
def test_systemd_reads_the_same(parts: list[str], tmp_path_factory: pytest.TempPathFactory) -> None:
    path, text = tmp_path_factory.getbasetemp() / "environment", "".join(parts)
    path.write_bytes(text.encode())
    try:
        variables = parse_variables(text)
    except UnreadableVariables:
        reject()
    assert read_by_systemd(path) == variables


def read_by_systemd(path: Path) -> dict[str, str]:
    """Calls the function with which systemd reads an EnvironmentFile (src/basic/env-file.c)."""
    libc, systemd = ctypes.CDLL(None), ctypes.CDLL(str(LIBRARY))
    libc.fopen.restype, libc.fclose.argtypes = ctypes.c_void_p, [ctypes.c_void_p]
    systemd.load_env_file.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
    values = ctypes.POINTER(ctypes.c_char_p)()
    file = libc.fopen(os.fsencode(path), b"r")
    assert systemd.load_env_file(file, b"", ctypes.byref(values)) == 0
    libc.fclose(file)
    lines: list[str] = []
    while values and (line := values[len(lines)]) is not None:
        lines.append(line.decode())
    return dict(line.split("=", 1) for line in lines)


def run_wrapper(
    folder: Path, environment: str, *arguments: str, **variables: str
) -> "subprocess.CompletedProcess[str]":
    """Runs docs/deploy/library with a manage.py that prints its environment and arguments."""
    for name in (".venv", "library_site"):
        (folder / name).symlink_to(ROOT / name)
    (folder / "manage.py").write_text("import json, os, sys\nprint(json.dumps([dict(os.environ), sys.argv]))\n")
    (folder / "environment").write_text(environment)
    script = (ROOT / "docs" / "deploy" / "library").read_text()
    for place, replacement in PLACES.items():
        assert place in script
        script = script.replace(place, replacement.format(folder=folder))
    command = ["sh", "-c", script, "library", *arguments]
    path = {"PATH": os.environ["PATH"]}
    return subprocess.run(
        command, env={**path, **variables}, capture_output=True, text=True, check=False, timeout=PROCESS_TIMEOUT
    )


def test_the_script_of_a_deployment_runs_nothing_of_the_file(tmp_path: Path) -> None:
    text = f"DATABASE_URL={FAILOVER_URL}\nEMAIL_FROM='it is # me'\nSECRET_KEY=a$HOME touch {tmp_path}/ran\n"
    run = run_wrapper(tmp_path, text, "seed_books", "--title", "two words; $x", LOG_LEVEL="debug", SECRET_KEY="other")
    variables, arguments = json.loads(run.stdout)
    expected = {
        "DATABASE_URL": FAILOVER_URL,
        "EMAIL_FROM": "it is # me",
        "SECRET_KEY": f"a$HOME touch {tmp_path}/ran",
        "LOG_LEVEL": "debug",
    }
    assert {name: variables[name] for name in expected} == expected
    assert arguments == ["manage.py", "seed_books", "--title", "two words; $x"]
    assert (run.stderr, (tmp_path / "ran").exists()) == ("", False)


def test_a_file_that_cannot_be_read_ends_the_command(tmp_path: Path) -> None:
    run = run_wrapper(tmp_path, "export A=1", "deploy")
    assert (run.returncode, run.stdout) == (1, "")
    assert run.stderr.startswith(f"{tmp_path}/environment: at line 1, systemd ignores 'export A'")


def test_a_file_that_is_missing_is_named(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "library_site.environment_file", f"{tmp_path}/none", "manage.py"]
    run = subprocess.run(command, capture_output=True, text=True, check=False, timeout=PROCESS_TIMEOUT)
    assert (run.returncode, run.stderr) == (1, f"{tmp_path}/none: No such file or directory.\n")
