"""Reads responses, so that tests can compare them in one line."""

import httpx

# A request id that a client sends.
REQUEST_ID = "Caller-1.of_2"


def parse_allow(response: httpx.Response) -> set[str]:
    """Returns the methods that the header Allow lists."""
    return set(response.headers["Allow"].split(", "))
