import pytest

from books.search import texts


@pytest.fixture(params=["few", "common"])
def scarcity(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Rare and common texts are searched in different ways."""
    if request.param == "common":
        monkeypatch.setattr(texts, "MAX_INDEX_MATCHES", 0)
        monkeypatch.setattr(texts, "RARE_LIMIT", 0)
