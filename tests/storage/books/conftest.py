"""Who begins the operations of these tests."""

import pytest

from books.history.actors import ActorRef
from tests.support.operations import create_head_librarian


@pytest.fixture
def head(db: None) -> ActorRef:
    return create_head_librarian()
