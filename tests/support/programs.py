"""The one list of the programs of other authors that tests start. `program_fixtures.py` provides them to tests.

`python3 tests/support/programs.py` prints the Debian packages of those that are missing. It imports the standard
library alone, because `.ci/run` calls it before any package is there.
"""

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

# Seconds.
TRIAL_TIMEOUT = 10

# Runs a command with file systems of its own. Users other than root need a kernel that lets them.
UNSHARE = ("unshare", "--mount") if os.geteuid() == 0 else ("unshare", "--map-root-user", "--mount")
# Debian stores the binaries of PostgreSQL's server by version, outside the PATH.
DEBIAN_POSTGRESQL = Path("/usr/lib/postgresql")


class Program(NamedTuple):
    name: str
    commands: tuple[str, ...]
    package: str
    # A call that must succeed, for what a machine can have and not allow.
    trial: tuple[str, ...] = ()

    def find_missing(self) -> list[str]:
        """Returns the commands that this machine does not have, or else the trial that fails."""
        missing = [command for command in self.commands if not find_command(command)]
        if missing or not self.trial:
            return missing
        trial = subprocess.run(self.trial, capture_output=True, check=False, timeout=TRIAL_TIMEOUT)
        return [" ".join(self.trial)] if trial.returncode else []


# A command that does the same where another is missing. Chromium with its windows takes nearly twice the CPU.
SUBSTITUTES = {"chromium-headless-shell": "chromium"}
# By the name of the fixture with which a test asks for one.
PROGRAMS = {
    "chromium": Program("Chromium", ("chromium-headless-shell",), "chromium-headless-shell"),
    "gettext": Program("GNU gettext", ("xgettext", "msguniq", "msgmerge", "msgattrib", "msgfmt"), "gettext"),
    "gnu_make": Program("GNU make", ("make",), "make"),
    "nginx": Program("nginx", ("nginx",), "nginx"),
    "node": Program("Node", ("node",), "nodejs"),
    "openssl": Program("OpenSSL", ("openssl",), "openssl"),
    "postgresql": Program("PostgreSQL", ("psql", "pg_dump", "pg_restore", "initdb", "pg_ctl"), "postgresql"),
    "promtool": Program("promtool", ("promtool",), "prometheus"),
    "redis_server": Program("Redis", ("redis-server",), "redis-server"),
    "systemd": Program("systemd", ("systemd-analyze",), "systemd"),
    "unshare": Program("unshare", ("unshare", "mount"), "mount", (*UNSHARE, "true")),
    "varnish": Program("Varnish", ("varnishd",), "varnish"),
}


def find_command(command: str) -> str | None:
    return shutil.which(command) or shutil.which(SUBSTITUTES.get(command, "")) or find_debian_binary(command)


def find_debian_binary(command: str) -> str | None:
    """Returns the path of a binary of PostgreSQL's newest server, if `psql` is on the PATH."""
    versions = sorted(DEBIAN_POSTGRESQL.glob(f"*/bin/{command}"), key=lambda path: int(path.parents[1].name))
    return str(versions[-1]) if versions and shutil.which("psql") else None


def list_missing() -> list[Program]:
    return [program for program in PROGRAMS.values() if program.find_missing()]


def link_other_commands(folder: Path) -> None:
    """Fills a new folder with links to all commands of the PATH but those of the programs."""
    folders = [path for path in map(Path, os.get_exec_path()) if path.is_dir()]
    # Of two with one name the first counts.
    paths = {path.name: path for commands in reversed(folders) for path in commands.iterdir()}
    folder.mkdir()
    commands = {command for program in PROGRAMS.values() for command in program.commands}
    for name in paths.keys() - commands - {*SUBSTITUTES.values()}:
        if os.access(paths[name], os.X_OK):
            (folder / name).symlink_to(paths[name])


if __name__ == "__main__":
    if sys.argv[1:]:
        link_other_commands(Path(sys.argv[1]))
    else:
        for program in list_missing():
            print(program.package)
