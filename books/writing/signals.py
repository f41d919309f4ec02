"""Sends Django's signals for books, inside the transaction of the change, after its history and its event are written.
Without receivers it sends nothing.
"""

from collections.abc import Iterable

from django.db import DEFAULT_DB_ALIAS
from django.db.models.signals import post_delete, post_save

from books.book_values import BookValues
from books.models import Book


def has_save_receivers() -> bool:
    """Whether there are receivers. Then the change needs a transaction, and must return the books that it wrote."""
    return post_save.has_listeners(Book)


def has_receivers() -> bool:
    return has_save_receivers() or post_delete.has_listeners(Book)


def send_created(books: Iterable[BookValues], instance: Book | None = None) -> None:
    """Sends `post_save` for new and restored books. Receivers get the saved instance, if there is one."""
    if has_save_receivers():
        for book in books:
            send_post_save(instance or build_instance(book), created=True, update_fields=None)


def send_changed(pairs: Iterable[tuple[BookValues, BookValues]], instance: Book | None = None) -> None:
    """Sends `post_save` for changed books: each as it was and as it is. `update_fields` are the changed columns."""
    if has_save_receivers():
        for old, new in pairs:
            values = zip(BookValues._fields, old, new, strict=True)
            names = frozenset(name for name, old_value, new_value in values if old_value != new_value)
            send_post_save(instance or build_instance(new), created=False, update_fields=names)


def send_post_save(instance: Book, *, created: bool, update_fields: frozenset[str] | None) -> None:
    post_save.send(
        Book, instance=instance, created=created, update_fields=update_fields, raw=False, using=DEFAULT_DB_ALIAS
    )


def send_deleted(books: Iterable[BookValues], instance: Book | None = None) -> None:
    """Sends `post_delete` with the former books."""
    if post_delete.has_listeners(Book):
        for book in books:
            deleted = instance or build_instance(book)
            post_delete.send(Book, instance=deleted, using=DEFAULT_DB_ALIAS, origin=deleted)


def build_instance(book: BookValues) -> Book:
    return Book.from_db(DEFAULT_DB_ALIAS, BookValues._fields, book)
