"""The served library against its own OpenAPI document, by Schemathesis."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.serving import serving

CONFIGURATION = Path(__file__).parent.parent / "schemathesis.toml"


@pytest.mark.once
def test_the_library_keeps_to_its_document(tmp_path: Path) -> None:
    options = "--checks all --phases examples,coverage,fuzzing,stateful --mode all".split()
    bounds = "--max-examples 30 --seed 1 --generation-database none --continue-on-failure --no-color".split()
    schemathesis = [sys.executable, "-m", "schemathesis.cli", "--config-file", str(CONFIGURATION), "run"]
    # It deletes what it finds, and writes what it learned into the folder that it runs in.
    with serving(tmp_path) as service, service.client() as client:
        client.get("/openapi.json").raise_for_status()
        run = subprocess.run(
            [*schemathesis, f"{service.url}/openapi.json", *options, *bounds],
            cwd=tmp_path,
            capture_output=True,
            text=True,
            check=False,
            timeout=300,
        )
    assert run.returncode == 0, run.stdout + run.stderr
