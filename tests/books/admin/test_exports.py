"""The list of books as a file."""

import pytest
from django.contrib.auth.models import User
from django.test import Client

from books.exchange.formats.registry import STREAMED_FORMATS
from tests.support.book_files import read_records
from tests.support.books_admin import LIST, create_book

EXPORT = f"{LIST}export/"


@pytest.mark.parametrize("media_type", STREAMED_FORMATS)
def test_the_books_of_the_list_are_in_the_file(librarian: Client, media_type: str) -> None:
    format = STREAMED_FORMATS[media_type]
    for number in range(4):
        create_book(title=f"Emma {number}", year=1900 + number)
    create_book(title="Other", year=1902)
    answer = librarian.get(
        EXPORT, {"format": format.name, "q": "emma", "year_from": "1901", "year_to": "1902", "sort": "-id"}
    )
    assert answer["Content-Disposition"] == f'attachment; filename="books{format.extension}"'
    titles = [record.values["title"] for record in read_records(format.name, answer.getvalue())]
    assert titles == ["Emma 1", "Emma 2"]


def test_the_list_offers_what_it_shows(librarian: Client) -> None:
    create_book(title="Emma")
    page = librarian.get(LIST, {"q": "emma", "availability": "available", "sort": "title"})
    assert page.context["cl"].export_parameters == [("q", "emma"), ("availability", "available")]
    assert b'<option value="marcxml">MARCXML</option>' in page.content


def test_an_unknown_format_leads_back_to_the_list(librarian: Client) -> None:
    answer = librarian.get(EXPORT, {"format": "xlsx", "q": "emma"}, follow=True)
    assert answer.redirect_chain == [(f"{LIST}?q=emma", 302)]
    assert "Choose a format." in answer.content.decode()


def test_who_may_not_see_books_may_not_export_them(client: Client, db: None) -> None:
    client.force_login(User.objects.create_user("nobody", is_staff=True))
    assert client.get(EXPORT, {"format": "csv"}).status_code == 403
