"""A setting that was added is read from the environment."""

import os

import httpx

from tests.support.server import run_command


def test_it_has_a_default(api: httpx.Client) -> None:
    assert api.get("/").json() == {"message": "Welcome to the Library API. See /docs for its documentation."}


def test_the_environment_sets_it() -> None:
    code = "from library_site.views import WELCOME_BODY; print(WELCOME_BODY)"
    printed = run_command(os.environ | {"WELCOME_MESSAGE": "Hello"}, "shell", "-v0", "-c", code)
    assert printed.strip() == "{'message': 'Hello'}"
