"""A program with the client that openapi-generator makes: `program.py URL KEY`."""

import sys

from openapi_client import ApiClient, BookCreate, BooksApi, Configuration, EventSelector

url, key = sys.argv[1:]
books = BooksApi(ApiClient(Configuration(host=url, api_key={"APIKey": key})))
assert len(books.list_books(limit=1).results) == 1
new = BookCreate(title="Anielka", author="Bolesław Prus", year=1880, isbn="978-83-7327-192-0", genre="Novel")
book = books.create_book(new)
assert books.read_book(book.id).title == "Anielka"
assert EventSelector.ALL.value == "*"
