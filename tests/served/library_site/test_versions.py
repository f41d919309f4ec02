"""Strange addresses over the network: each is answered in its version, or refused."""

import httpx

from tests.support.server import Service

INVALID_VERSIONS = ["", "0", "3", "-1", "x", "1.0", "2,1", "%2B2", "%C2%B2", "%00", "2%0A", "9" * 5000]


def detect_version(response: httpx.Response) -> int:
    body = response.json()
    return 2 if isinstance(body, dict) and body.keys() & {"error", "results", "version"} else 1


def test_a_version_that_does_not_exist_is_refused(service: Service) -> None:
    with service.open_client() as client:
        for number in INVALID_VERSIONS:
            responses = [client.get(f"/api/v{number}/books"), client.get(f"/api/books?version={number}")]
            refusals = [(response.status_code, response.json()["error"]["code"]) for response in responses]
            assert refusals == [(400, "UNSUPPORTED_VERSION")] * 2, number


STRANGE_ADDRESSES = {
    "/api/": (404, 1),
    "/api/v1": (404, 1),
    "/api/v2/": (404, 2),
    "/api/v": (400, 2),
    "/api//books": (404, 1),
    "/api//v2/books": (404, 1),
    "/api/v2//books": (404, 2),
    "/api/v2/books//": (404, 2),
    "/api/v1/v2/books": (404, 1),
    "/api/v1/v2/books?version=2": (400, 2),
    "/api/v2/v9/books": (404, 2),
    "/api/v2//v1/books": (404, 2),
    "/api/v9/v1/books": (400, 2),
    "/api/v1/api/books": (404, 1),
    "/api/books/v2": (422, 1),
    "/api/v2/books/v1": (422, 2),
    "/api/V2/books": (404, 1),
    "/api/%76%32/books": (200, 2),
    "/api/v%31/books/1": (200, 1),
    "/api/v2/books%00": (404, 2),
    "/api/v2/books/%FF": (422, 2),
    "/api/v2/books/%D9%A1": (422, 2),
    "/api/books/%EF%BC%91": (422, 1),
    "/api/v1/books/%E6%97%A5": (422, 1),
    "/api/v2/%E6%97%A5%0D%0A": (404, 2),
    "/api/v1/" + "a" * 20_000: (404, 1),
    "/api/v2/books/" + "9" * 20_000: (404, 2),
    "/api/v2" * 1_000: (404, 2),
}


def test_a_strange_address_is_answered_in_its_version(service: Service) -> None:
    """Its first segment is the version."""
    with service.open_client() as client:
        for address, expected in STRANGE_ADDRESSES.items():
            response = client.get(httpx.URL(service.url + address))
            assert (response.status_code, detect_version(response)) == expected, address[:99]
            assert "Accept" in response.headers["Vary"]
