"""The files of docs/deploy/, which a deployment copies: systemd and nginx accept them."""

import re
import shutil
import ssl
import subprocess
from pathlib import Path

import pytest
from django.core.management import get_commands

from library_site.deployment import env
from tests.support.settings import read_settings
from tests.support.waiting import PROCESS_TIMEOUT

ROOT = Path(__file__).parents[3]
FOLDER = ROOT / "docs" / "deploy"
UNITS = sorted(FOLDER.glob("*.service"))
TARGET, TIMER = FOLDER / "library.target", FOLDER / "library-backup.timer"
# What systemd calls the exposure of a unit, in tenths: 0 is the best, 100 the worst.
MAX_EXPOSURE = 20


@pytest.fixture
def units(tmp_path: Path) -> list[str]:
    """An instance of each unit, with the code of this checkout."""
    paths = [tmp_path / path.name.replace("@", "@1") for path in UNITS]
    for source, path in zip(UNITS, paths, strict=True):
        path.write_text(source.read_text().replace("/opt/library/", f"{ROOT}/"))
    for path in (TARGET, TIMER):
        shutil.copy(path, tmp_path)
    return [str(path) for path in paths]


def run(*command: str) -> tuple[int, str]:
    result = subprocess.run(
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False, timeout=PROCESS_TIMEOUT
    )
    return result.returncode, result.stdout


@pytest.mark.usefixtures("systemd")
def test_systemd_accepts_the_units(units: list[str]) -> None:
    others = [str(Path(units[0]).parent / path.name) for path in (TARGET, TIMER)]
    assert run("systemd-analyze", "verify", "--man=no", *units, *others) == (0, "")


@pytest.mark.usefixtures("systemd")
def test_the_units_are_hardened(units: list[str]) -> None:
    status, report = run("systemd-analyze", "security", "--offline=true", f"--threshold={MAX_EXPOSURE}", *units)
    assert status == 0, report


def test_the_target_starts_and_stops_each_unit() -> None:
    for unit in (unit for unit in UNITS if "@" in unit.name):
        lines = unit.read_text().splitlines()
        assert {"PartOf=library.target", "WantedBy=library.target"} < set(lines), unit
        assert any(line.startswith("MemoryMax=") for line in lines), unit


def test_the_script_runs_a_command_with_what_the_units_have(tmp_path: Path) -> None:
    (tmp_path / "systemd-run").write_text('#!/bin/sh\nprintf "%s\\n" "$@"\n')
    (tmp_path / "systemd-run").chmod(0o700)
    status, output = run("sh", "-c", f'PATH={tmp_path}; . "$0"', str(FOLDER / "library"), "seed_books", "two words; $x")
    program, *arguments = output.splitlines()[-4:]
    assert (status, arguments) == (0, ["manage.py", "seed_books", "two words; $x"])
    properties = {line.partition("=")[2] for line in output.splitlines() if line.startswith("--property=")}
    assert len(properties) == 5
    for unit in UNITS:
        lines = unit.read_text().splitlines()
        assert properties < set(lines)
        assert any(line.startswith(f"ExecStart={program} manage.py ") for line in lines)


def test_the_units_run_commands_that_exist() -> None:
    lines = [line for unit in UNITS for line in unit.read_text().splitlines() if line.startswith("ExecStart=")]
    commands = [line.removeprefix("ExecStart=/opt/library/.venv/bin/python manage.py ").split()[0] for line in lines]
    assert set(commands) - get_commands().keys() == {"%i"}


@pytest.mark.parametrize("name", ["nginx-first.conf", "nginx.conf"])
@pytest.mark.usefixtures("openssl")
def test_nginx_accepts_its_files(tmp_path: Path, nginx: str, name: str) -> None:
    """The first one comes before the certificate."""
    key, certificate = tmp_path / "privkey.pem", tmp_path / "fullchain.pem"
    names = ["-keyout", str(key), "-out", str(certificate), "-subj", "/CN=library.example"]
    if name == "nginx.conf":
        assert run("openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", *names)[0] == 0
    site = (FOLDER / name).read_text().replace("/etc/letsencrypt/live/library.example", str(tmp_path))
    configuration = tmp_path / "nginx.conf"
    configuration.write_text(f"pid {tmp_path}/pid;\nevents {{}}\nhttp {{\naccess_log off;\n{site}}}\n")
    status, output = run(nginx, "-t", "-e", "stderr", "-c", str(configuration))
    assert (status, "warn" in output, "test is successful" in output) == (0, False, True), output


def test_nginx_offers_only_ciphers_that_are_secure() -> None:
    """Those of Mozilla's "intermediate" profile, without the ones that need a file of parameters."""
    [protocols, ciphers] = re.findall(
        r"^ *ssl_(?:protocols|ciphers) (.+);$", (FOLDER / "nginx.conf").read_text(), re.MULTILINE
    )
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.set_ciphers(ciphers)
    offered = [cipher for cipher in context.get_ciphers() if cipher["protocol"] != "TLSv1.3"]
    assert protocols == "TLSv1.2 TLSv1.3"
    assert [cipher["name"] for cipher in offered] == ciphers.split(":")
    assert all(cipher["aead"] and cipher["kea"] == "kx-ecdhe" for cipher in offered)


def test_the_environment_is_accepted(tmp_path: Path) -> None:
    lines = (FOLDER / "environment").read_text().splitlines()
    variables = dict(line.split("=", 1) for line in lines if not line.startswith("#"))
    values = read_settings({**variables, "SECRET_KEY": "x" * 50, "DATA_DIR": str(tmp_path)})
    assert variables.keys() <= env.read_names
    assert (values["HTTPS"], values["PUBLIC_URL"]) == (True, "https://library.example")
