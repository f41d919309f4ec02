"""Every response carries a request id, and all code that works for the request can read it."""

import re

import httpx
from django.http import HttpRequest, StreamingHttpResponse
from django.test import RequestFactory

from library_site.http import request_log
from library_site.monitoring.middleware import RequestLogMiddleware

REQUEST_ID = "Caller-1.of_2"


def get_request_id(response: httpx.Response) -> str:
    """Returns the request id of a response, which must have exactly one."""
    (request_id,) = response.headers.get_list("X-Request-ID")
    assert isinstance(request_id, str)
    return request_id


def test_an_acceptable_id_is_kept_and_any_other_is_replaced(api: httpx.Client) -> None:
    for value in ("a" * 8, "a" * 64, "a.b_C-09"):
        assert get_request_id(api.get("/", headers={"X-Request-ID": value})) == value
    others = ["", "a" * 7, "a" * 65, "with space", "a,bcdefgh", "abcdefgh\n", "1" * 9 + "/"]
    new_ids = [get_request_id(api.get("/", headers={"X-Request-ID": value})) for value in others * 2]
    assert [new_id for new_id in new_ids if not re.fullmatch("[0-9a-f]{32}", new_id)] == []
    assert len(set(new_ids)) == len(new_ids)


def respond_with_id(request: HttpRequest) -> StreamingHttpResponse:
    return StreamingHttpResponse(request_log.current_request_id.get().encode() for _ in range(1))


def test_the_id_can_be_read_until_the_body_is_sent(rf: RequestFactory) -> None:
    response = RequestLogMiddleware(respond_with_id)(rf.get("/", headers={"X-Request-ID": REQUEST_ID}))
    assert b"".join(response) == REQUEST_ID.encode()
    assert [entry.request_id for entry in request_log.active_requests.values()] == [REQUEST_ID]
    response.close()
    assert (request_log.current_request_id.get(), request_log.active_requests) == ("-", {})
