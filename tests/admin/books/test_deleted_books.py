"""Deleted books, and their restoration."""

from typing import Any

import pytest
from django.contrib.auth.models import Permission, User
from django.test import Client
from django.utils import timezone

from books.admin.book import deleted_books
from books.book.fields import FIELDS
from books.models import Book, Change
from books.writing import changes
from books.writing.merging import merge_books
from tests.support.admin_pages import follow_link, read_text, read_words
from tests.support.books_admin import (
    DELETED_BOOKS,
    LIST,
    create_book,
    delete_book,
    find_anybody,
    history_address,
    list_entries,
    page_address,
)


def restore_address(book: Book) -> str:
    return f"{LIST}{book.pk}/restore/"


def delete_new_book(**fields: Any) -> Book:
    book = create_book(**fields)
    delete_book(book)
    return book


def restore(book: Book) -> None:
    changes.restore_book(book.pk, find_anybody(), timezone.now())


def test_books_that_are_still_deleted_are_listed(librarian: Client) -> None:
    restored_book, book, twice_deleted_book = (
        delete_new_book(title=title) for title in ("Emma", "Ulysses", "Germinal")
    )
    create_book(title="Persuasion")
    for deleted_book in (restored_book, twice_deleted_book):
        restore(deleted_book)
    delete_book(twice_deleted_book)
    kept, merged = create_book(), create_book()
    merge_books(kept.pk, {kept.pk: 1, merged.pk: 1}, dict.fromkeys(FIELDS, kept.pk), find_anybody(), timezone.now())
    response: Any = librarian.get(DELETED_BOOKS)
    assert list_entries(response) == [("Germinal (deleted)", 4), ("Ulysses (deleted)", 2)]
    assert ("Title", "Ulysses", None) in response.context["changes"][1].lines
    assert f'formaction="{restore_address(book)}"' in read_text(response)


def test_the_list_has_pages(librarian: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    for title in "abc":
        delete_new_book(title=title)
    monkeypatch.setattr(deleted_books, "PAGE_SIZE", 2)
    first_page = librarian.get(DELETED_BOOKS)
    second_page = follow_link(librarian, first_page, "Older")
    pages = [first_page, second_page, follow_link(librarian, second_page, "Newer")]
    assert [[title[0] for title, _ in list_entries(page)] for page in pages] == [["c", "b"], ["a"], ["c", "b"]]


def test_a_librarian_restores_a_book_under_its_old_id(librarian: Client) -> None:
    book = delete_new_book(title="<Emma>")
    response: Any = librarian.post(restore_address(book), follow=True)
    restored_book = Book.objects.get(pk=book.pk)
    assert (restored_book.title, restored_book.isbn, restored_book.version) == ("<Emma>", book.isbn, 3)
    assert Change.objects.get(book_id=book.pk, version=3).actor.user_name == "astrid"
    assert response.redirect_chain == [(history_address(book), 302)]
    assert "The book “&lt;Emma&gt;” is restored." in read_text(response)


def test_the_history_of_a_deleted_book_restores_it(librarian: Client) -> None:
    book = delete_new_book()
    html = read_text(librarian.get(history_address(book)))
    assert f'<form method="post" action="{restore_address(book)}">' in html
    restore(book)
    assert restore_address(book) not in read_text(librarian.get(history_address(book)))


def test_a_book_whose_isbn_another_book_has_is_not_restored(librarian: Client) -> None:
    book = delete_new_book(isbn="taken")
    holder = create_book(title="<Holder>", isbn="taken")
    response: Any = librarian.post(restore_address(book), follow=True)
    link = f'<a href="{page_address(holder)}">&lt;Holder&gt;</a> has this ISBN.'
    assert f"Nothing was changed. {link}" in read_text(response)
    assert not Book.objects.filter(pk=book.pk).exists()


def test_a_book_that_is_there_is_not_restored(librarian: Client) -> None:
    book = delete_new_book()
    restore(book)
    response: Any = librarian.post(restore_address(book), follow=True)
    assert "Nothing was changed. The book is not deleted." in read_words(response)
    assert Book.objects.get(pk=book.pk).version == 3


def test_a_link_restores_nothing(librarian: Client) -> None:
    book = delete_new_book()
    assert librarian.get(restore_address(book)).headers["Location"] == history_address(book)
    assert not Book.objects.exists()


def test_who_may_not_add_books_restores_none(client: Client, astrid: User) -> None:
    book = delete_new_book()
    astrid.groups.clear()
    astrid.user_permissions.add(*Permission.objects.filter(codename__in=["view_history", "change_book", "delete_book"]))
    client.force_login(astrid)
    pages = [client.get(address) for address in (DELETED_BOOKS, history_address(book))]
    assert [restore_address(book) in read_text(page) for page in pages] == [False, False]
    assert client.post(restore_address(book)).status_code == 403
    assert not Book.objects.exists()


def test_the_address_of_a_book_that_is_gone_leads_to_its_history_or_the_list(librarian: Client, astrid: User) -> None:
    book = create_book(title="Emma")
    delete_book(book)
    page = librarian.get(page_address(book), follow=True)
    assert page.redirect_chain == [(history_address(book), 302)]
    assert f'This book is deleted. <a href="{DELETED_BOOKS}">' in read_text(page)
    for address in (f"{LIST}999/change/", f"{LIST}x/change/", f"{LIST}999/delete/", f"{LIST}999/history/"):
        assert librarian.get(address).headers["Location"] == LIST, address
    astrid.groups.clear()
    astrid.user_permissions.set(Permission.objects.filter(codename__in=["view_book", "delete_book"]))
    page = librarian.get(page_address(book), follow=True)
    assert page.redirect_chain == [(LIST, 302)]
    assert "That does not exist" in read_words(page)
    astrid.user_permissions.set(Permission.objects.filter(codename="delete_book"))
    assert librarian.get(f"{LIST}999/delete/").headers["Location"] == "/admin/"
