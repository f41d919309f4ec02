"""What an answer says, in few words."""

import httpx

# Of a request, as its caller names it.
ID = "Caller-1.of_2"


def problems(answer: httpx.Response) -> list[tuple[str, str]]:
    """Each problem of a 422 by its place and type: `("body.year", "int_type")`."""
    return [(".".join(problem["loc"]), problem["type"]) for problem in answer.json()["detail"]]


def places(answer: httpx.Response) -> list[str]:
    """Where the problems of a 422 are, each place once."""
    return list(dict.fromkeys(place for place, _ in problems(answer)))


def refusal(answer: httpx.Response) -> tuple[int, list[str]]:
    """The status, and the members of the body: `(409, ["detail"])`."""
    return answer.status_code, list(answer.json())


def allowed(answer: httpx.Response) -> set[str]:
    return set(answer.headers["Allow"].split(", "))
