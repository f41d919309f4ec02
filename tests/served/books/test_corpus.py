"""Version 1 answers as it did when the corpus was recorded, except for headers that are newer than the corpus."""

import json
from pathlib import Path

from tests.support.corpus import CORPUS_FILE, collect_answers, drop_request_body
from tests.support.server import serve_library


def test_the_answers_of_version_1_do_not_change(tmp_path: Path) -> None:
    recorded_answers = json.loads(CORPUS_FILE.read_text(encoding="utf-8"))
    with serve_library(tmp_path) as service:
        current_answers = [drop_request_body(answer) for answer in collect_answers(service)]
    for answer, expected in zip(current_answers, recorded_answers, strict=True):
        answer["headers"] = {name: value for name, value in answer["headers"].items() if name in expected["headers"]}
    assert current_answers == recorded_answers
