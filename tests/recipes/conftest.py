"""A client that each recipe is tried with."""

from collections.abc import Iterator

import httpx
import pytest
from django.test.utils import override_settings

from tests.support.applications import open_client


@pytest.fixture(params=[True, False], ids=["compiled path", "Django alone"])
def each_client(request: pytest.FixtureRequest, api: httpx.Client) -> Iterator[httpx.Client]:
    """A client of the compiled path, then one of Django alone."""
    with override_settings(COMPILED_PATH=request.param), open_client() as client:
        yield client
