"""Schemathesis checks the served library against its own OpenAPI document."""

import subprocess
import sys
from pathlib import Path

from tests.support.server import serve_library
from tests.support.waiting import PROCESS_TIMEOUT

CONFIGURATION = Path(__file__).parents[2] / "schemathesis.toml"


def test_the_library_follows_its_document(tmp_path: Path) -> None:
    options = "--checks all --phases examples,fuzzing,stateful --mode all".split()
    bounds = "--max-examples 4 --seed 1 --generation-database none --continue-on-failure --no-color".split()
    schemathesis = [sys.executable, "-m", "schemathesis.cli", "--config-file", str(CONFIGURATION), "run"]
    # Schemathesis deletes books, and writes files into its working folder.
    with serve_library(tmp_path) as service, service.open_client() as client:
        client.get("/openapi.json").raise_for_status()
        run = subprocess.run(
            [*schemathesis, f"{service.url}/openapi.json", *options, *bounds],
            cwd=tmp_path,
            capture_output=True,
            text=True,
            check=False,
            timeout=PROCESS_TIMEOUT,
        )
    assert run.returncode == 0, run.stdout + run.stderr
