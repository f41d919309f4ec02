"""Responses to requests with an Idempotency-Key, and what is the same when such a response is repeated."""

import httpx

KEY = {"Idempotency-Key": "4c0e6a1f-9b8d-4e35-8f0a-1b2c3d4e5f60"}


def is_replayed(response: httpx.Response) -> bool:
    return bool(response.headers.get("Idempotent-Replayed") == "true")


def get_replayed_parts(response: httpx.Response) -> tuple[object, ...]:
    names = ("Content-Type", "Location", "ETag", "Link")
    return response.status_code, response.content, *(response.headers.get(name) for name in names)


def require_replay(first: httpx.Response, repetition: httpx.Response) -> None:
    assert get_replayed_parts(repetition) == get_replayed_parts(first)
    assert (is_replayed(first), is_replayed(repetition)) == (False, True)
