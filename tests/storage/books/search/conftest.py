import pytest

from books.search import texts


@pytest.fixture(params=["few", "common"])
def scarcity(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Rare and common texts are searched in different ways."""
    if request.param == "common":
        for name in ("MAX_INDEX_MATCHES", "MAX_TEXT_MATCHES", "RARE_LIMIT"):
            monkeypatch.setattr(texts, name, 0)
