"""Reads responses of version 1, so that tests can compare them in one line."""

import httpx

# A request id that a client sends.
REQUEST_ID = "Caller-1.of_2"


def list_problems(response: httpx.Response) -> list[tuple[str, str]]:
    """Returns each problem of a 422 by its location and type: `("body.year", "int_type")`."""
    return [(".".join(problem["loc"]), problem["type"]) for problem in response.json()["detail"]]


def parse_allow(response: httpx.Response) -> set[str]:
    """Returns the methods that the header Allow lists."""
    return set(response.headers["Allow"].split(", "))
