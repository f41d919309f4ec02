"""Ids of requests differ in all processes."""

import subprocess
import sys

import pytest

from library_site.random_ids import make_hex_id
from tests.support.waiting import PROCESS_TIMEOUT

pytestmark = pytest.mark.database_independent
PRINT_IDS_OF_FORKS = """
import os
from library_site.random_ids import make_hex_id
make_hex_id()
for _ in range(2):
    if not os.fork():
        print(make_hex_id(), flush=True)
        os._exit(0)
    os.wait()
print(make_hex_id())
"""


def test_processes_that_share_their_beginning_draw_different_ids() -> None:
    command = [sys.executable, "-c", PRINT_IDS_OF_FORKS]
    lines = subprocess.run(command, capture_output=True, text=True, check=True, timeout=PROCESS_TIMEOUT).stdout.split()
    assert len(lines) == len(set(lines)) == 3


def test_an_id_has_its_form() -> None:
    assert len(make_hex_id()) == 32
