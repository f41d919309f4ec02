"""The command that reads files, in the process of the tests and without its limits."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from tempfile import TemporaryFile
from typing import IO

from books.files.reader.tasks import write_results


@contextmanager
def run_reader_here(job: str, file: IO[bytes], *_files: IO[str]) -> Iterator[IO[bytes]]:
    with TemporaryFile() as output, open(file.fileno(), "rb", closefd=False) as stream:
        write_results(json.loads(job), stream, output)
        output.seek(0)
        yield output
