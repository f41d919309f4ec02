"""Random ids differ in all processes."""

import subprocess
import sys
from uuid import RFC_4122

from library_site.random_ids import make_hex_id, make_uuid
from tests.support.waiting import PROCESS_TIMEOUT

PRINT_IDS_OF_FORKS = """
import os
from library_site.random_ids import make_hex_id, make_uuid
print(make_hex_id(), make_uuid(), flush=True)
for _ in range(2):
    if not os.fork():
        print(make_hex_id(), make_uuid(), flush=True)
        os._exit(0)
    os.wait()
print(make_hex_id(), make_uuid())
"""


def test_processes_that_share_their_beginning_draw_different_ids() -> None:
    command = [sys.executable, "-c", PRINT_IDS_OF_FORKS]
    ids = subprocess.run(command, capture_output=True, text=True, check=True, timeout=PROCESS_TIMEOUT).stdout.split()
    assert len(ids) == len(set(ids)) == 8


def test_ids_have_their_forms() -> None:
    assert len(make_hex_id()) == 32
    assert (make_uuid().version, make_uuid().variant) == (4, RFC_4122)
