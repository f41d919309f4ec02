"""Finds the books that a code stands for. Unlike a search, it compares no words of titles, authors and genres."""

from django.db.models import Q

from books.lookup.scans import Kind, Scan
from books.models import Book
from library_site.db.integers import BIGINT_MAX


def find_by_code(scan: Scan, limit: int) -> list[Book]:
    return list(Book.objects.filter(build_code_condition(scan)).order_by("pk")[:limit])


def build_code_condition(scan: Scan) -> Q:
    """The ISBN in any writing, the id, or exactly what a book has in place of an ISBN, such as a library's own code."""
    has_id = Q(pk=scan.number) if scan.kind is Kind.ID and scan.number <= BIGINT_MAX else Q(pk__in=[])
    if scan.is_marked or scan.kind is Kind.NOTHING:
        return has_id
    has_isbn = Q(isbn=scan.text)
    return has_isbn | (Q(isbn13=scan.isbn13) if scan.kind is Kind.ISBN else has_id)
