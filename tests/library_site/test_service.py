"""The library as operators run it."""

from tests.service import SEEDED, Service


def test_a_served_library_is_seeded(service: Service) -> None:
    with service.client() as client:
        assert len(client.get("/api/books", params={"limit": 500}).json()) == SEEDED
