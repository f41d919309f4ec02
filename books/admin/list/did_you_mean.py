"""Proposes other searches where one has no matches."""

from urllib.parse import urlencode

from django.urls import reverse

from books.admin.descriptions import Link
from books.search.scans import Scan, ScanKind
from books.search.similar_texts import find_similar_texts


def list_similar_searches(scan: Scan) -> list[Link]:
    """Returns links to the lists of similar titles and authors; none for the code of a book."""
    texts = find_similar_texts(scan.text) if scan.kind is ScanKind.WORDS else []
    return [Link(text, f"{reverse('admin:books_book_changelist')}?{urlencode({'q': text})}") for text in texts]
