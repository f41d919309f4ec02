"""Generates clients of version 2, compiles them, runs a program with each against a served library, and lints the
document. Run it with `make clients`; it ends with a failure where any step does.
"""

import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import httpx

HERE = Path(__file__).parent
PROGRAMS = HERE / "programs"
# `requirements/bootstrap.py` installs them.
PYTHON_TOOLS = Path(".data/clients/bin").absolute()
NODE_TOOLS = HERE / "node_modules" / ".bin"
# Seconds for each step.
TIMEOUT = 300
KEY_CODE = """
from django.contrib.auth.models import Group
from django.utils import timezone
from oauth import api_keys
from tests.support.oauth_flows import create_librarian
person = create_librarian("programs")
person.groups.set(Group.objects.all())
scopes = frozenset(["read", "write", "webhooks"])
print(api_keys.create_key(person, "Programs", scopes, now=timezone.now())[1])
"""


def main() -> int:
    missing = [path.name for path in (PYTHON_TOOLS / "openapi-python-client", NODE_TOOLS / "tsc") if not path.exists()]
    if missing or not has_node():
        print(f"!!! {' and '.join(missing) or 'Node 20'} is missing: the generated clients were NOT tried. !!!")
        return 0
    with tempfile.TemporaryDirectory(prefix="library-clients-") as name, serve(Path(name)) as (url, key):
        folder = Path(name) / "clients"
        shutil.copytree(PROGRAMS, folder)
        shutil.copy(HERE / "tsconfig.json", folder)
        (folder / "node_modules").symlink_to(HERE / "node_modules")
        for path in ("openapi.json", "openapi/v1.json", "openapi/v2.json"):
            document = folder / Path(path).name
            document.write_bytes(httpx.get(f"{url}/{path}").raise_for_status().content)
            lint(document)
        run_python_program(folder, url, key)
        check_models(folder, url)
        run_typescript_programs(folder, url, key)
        if shutil.which("java"):
            run_programs_of_openapi_generator(folder, url, key)
        else:
            print("!!! Java is missing: openapi-generator was NOT tried. !!!")
    return 0


def has_node() -> bool:
    """Whether there is Node 20 or later, which the linters need."""
    node = shutil.which("node")
    version = (
        subprocess.run([node, "--version"], check=True, stdout=subprocess.PIPE, text=True, timeout=TIMEOUT).stdout
        if node
        else "v0"
    )
    return int(version.removeprefix("v").partition(".")[0]) >= 20


@contextmanager
def serve(folder: Path) -> Iterator[tuple[str, str]]:
    """Serves a library with a worker. Yields its address, and a key that may do everything there."""
    port = find_free_port()
    environment = {
        **os.environ,
        "DATABASE_URL": f"sqlite:///{folder / 'library.sqlite3'}",
        "PORT": str(port),
        "PUBLIC_URL": f"http://127.0.0.1:{port}",
        "LOG_LEVEL": "error",
        "WEB_CONCURRENCY": "1",
    }
    run_manage(environment, "migrate", "-v0")
    run_manage(environment, "seed_books", "--count=40")
    key = run_manage(environment, "shell", "-v0", "-c", KEY_CODE).split()[-1]
    command = [sys.executable, "manage.py", "serve", "--with", "run_operations"]
    with subprocess.Popen(command, env=environment) as server:
        try:
            wait_for_response(f"http://127.0.0.1:{port}/livez")
            yield f"http://127.0.0.1:{port}", key
        finally:
            server.terminate()


def run_manage(environment: dict[str, str], *command: str) -> str:
    full_command = [sys.executable, "manage.py", *command]
    return subprocess.run(
        full_command, env=environment, check=True, stdout=subprocess.PIPE, text=True, timeout=TIMEOUT
    ).stdout


def find_free_port() -> int:
    with socket.socket() as reservation:
        reservation.bind(("127.0.0.1", 0))
        return int(reservation.getsockname()[1])


def wait_for_response(url: str) -> None:
    """Raises httpx.HTTPError."""
    for _ in range(300):
        with suppress(httpx.HTTPError):
            httpx.get(url)
            return
        time.sleep(0.1)
    httpx.get(url)


def lint(document: Path) -> None:
    run(NODE_TOOLS / "redocly", "lint", f"--config={HERE / 'redocly.yaml'}", document)
    run(NODE_TOOLS / "spectral", "lint", f"--ruleset={HERE / 'spectral.yaml'}", "--fail-severity=warn", document)


def run_python_program(folder: Path, url: str, key: str) -> None:
    client = folder / "python"
    run(
        PYTHON_TOOLS / "openapi-python-client",
        "generate",
        "--path",
        folder / "v2.json",
        "--output-path",
        client,
        "--meta",
        "none",
        "--fail-on-warning",
        f"--config={HERE / 'python_client.yaml'}",
    )
    client.rename(folder / "library_api_client")
    run(PYTHON_TOOLS / "python", "-m", "compileall", "-q", folder / "library_api_client")
    run(PYTHON_TOOLS / "python", folder / "program.py", url, key)
    report("openapi-python-client", folder / "library_api_client", "*.py")


def check_models(folder: Path, url: str) -> None:
    """datamodel-code-generator makes models, which read what the library answers."""
    run(
        PYTHON_TOOLS / "datamodel-codegen",
        f"--input={folder / 'v2.json'}",
        "--input-file-type=openapi",
        "--output-model-type=pydantic_v2.BaseModel",
        "--disable-warnings",
        f"--output={folder / 'models.py'}",
    )
    run(PYTHON_TOOLS / "python", folder / "read_models.py", url)
    report("datamodel-code-generator", folder, "models.py")


def run_typescript_programs(folder: Path, url: str, key: str) -> None:
    """With openapi-fetch, and with the schemas of zod that orval makes beside its own client."""
    run(NODE_TOOLS / "openapi-typescript", folder / "v2.json", f"--output={folder / 'schema.d.ts'}")
    for client in ("fetch", "zod"):
        output = f"./orval/{client}.ts"
        run(NODE_TOOLS / "orval", "--input", "./v2.json", "--output", output, "--client", client, cwd=folder)
    run(NODE_TOOLS / "tsc", "--project", folder / "tsconfig.json")
    for program in sorted(folder.glob("*.js")):
        run("node", program, url, key)
    report("openapi-typescript", folder, "schema.d.ts")
    report("orval", folder / "orval", "*.ts")


def run_programs_of_openapi_generator(folder: Path, url: str, key: str) -> None:
    """It reads the document without webhooks. Its own code in TypeScript needs weaker options than ours."""
    programs, document = folder / "openapi-generator", folder / "client.json"
    document.write_bytes(httpx.get(f"{url}/openapi/v2.json?webhooks=false").raise_for_status().content)
    for language, options in (
        ("typescript-fetch", "importFileExtension=.js"),
        ("python", "packageName=openapi_client"),
    ):
        run(
            PYTHON_TOOLS / "openapi-generator-cli",
            "generate",
            f"--generator-name={language}",
            f"--input-spec={document}",
            f"--output={programs / language}",
            f"--additional-properties={options}",
            "--global-property=apis,models,supportingFiles",
        )
    (programs / "python" / "openapi_client").rename(programs / "openapi_client")
    run(NODE_TOOLS / "tsc", "--project", programs / "tsconfig.json")
    run("node", programs / "program.js", url, key)
    run(PYTHON_TOOLS / "python", programs / "program.py", url, key)
    report("openapi-generator", programs / "typescript-fetch", "*.ts")
    report("openapi-generator", programs / "openapi_client", "*.py")


def run(*command: str | Path, cwd: Path | None = None) -> None:
    """Raises CalledProcessError."""
    environment = {**os.environ, "REDOCLY_TELEMETRY": "off", "NO_COLOR": "1", "JAVA_OPTS": "-Dlog.level=error"}
    subprocess.run([str(part) for part in command], check=True, cwd=cwd, env=environment, timeout=TIMEOUT)


def report(generator: str, folder: Path, pattern: str) -> None:
    print(f"{generator}: {len(list(folder.rglob(pattern)))} files generated and tried", flush=True)


if __name__ == "__main__":
    try:
        sys.exit(main())
    except subprocess.CalledProcessError as error:
        sys.exit(f"Failed: {error}")
