"""Reads responses with the models that datamodel-code-generator makes of the document: `read_models.py URL`."""

import sys
import urllib.request

from models import BookPage, Message

url = sys.argv[1]


def read(path: str) -> bytes:
    with urllib.request.urlopen(f"{url}{path}") as response:  # noqa: S310  # the library's own address
        return response.read()


page = BookPage.model_validate_json(read("/api/v2/books?limit=5"))
assert len(page.results) == 5
assert Message.model_validate_json(read("/")).message
