"""Version 1 answers as it did when the corpus was recorded, except for headers that are newer than the corpus."""

import json
from pathlib import Path

from tests.support.corpus import CORPUS_FILE, collect_responses, drop_request_body
from tests.support.server import serve_library


def test_the_responses_of_version_1_do_not_change(tmp_path: Path) -> None:
    recorded_responses = json.loads(CORPUS_FILE.read_text(encoding="utf-8"))
    with serve_library(tmp_path) as service:
        current_responses = [drop_request_body(response) for response in collect_responses(service)]
    for response, expected in zip(current_responses, recorded_responses, strict=True):
        response["headers"] = {
            name: value for name, value in response["headers"].items() if name in expected["headers"]
        }
    assert current_responses == recorded_responses
