"""A signal of a book is sent inside the transaction of its change, on both databases."""

from collections.abc import Iterator
from typing import Any, NoReturn

import pytest
from django.db.models.signals import post_delete, post_save

from books.models import Book, Change
from tests.support.books_admin import change_book, create_book, delete_book
from webhooks.models import Event


class ReceiverFailed(Exception):
    """A receiver of signals failed."""


@pytest.fixture
def failing_receiver() -> Iterator[Any]:
    def fail(**_: Any) -> NoReturn:
        raise ReceiverFailed

    yield fail
    for signal in (post_save, post_delete):
        signal.disconnect(fail, Book)


def read_stored() -> list[Any]:
    return [list(model.objects.order_by("pk").values()) for model in (Book, Change, Event)]


def test_a_receiver_that_fails_undoes_the_change(transactional_db: None, failing_receiver: Any) -> None:
    book = create_book()
    before = read_stored()
    for signal in (post_save, post_delete):
        signal.connect(failing_receiver, Book)
    for change in (create_book, lambda: change_book(book, title="Emma"), lambda: delete_book(book)):
        with pytest.raises(ReceiverFailed):
            change()
        assert read_stored() == before
