"""The genres of all books: shows genres with several spellings, and renames one."""

from typing import Annotated

from django.http import HttpRequest, HttpResponse
from django.utils.http import urlencode
from django.utils.translation import gettext as _
from msgspec import Meta

from books.admin.pager import Pager
from books.admin.views import BULK_EDIT, CHANGE_BOOK, render_page
from books.book_fields import MAX_LENGTHS
from books.search.genres import GenreCount, count_genres
from library_site.api.cursors import PageCursor
from library_site.db.keyset import Page, Start

GENRES_OF_A_PAGE = 100
# Folding can turn one character into several.
MAX_FOLDED_LENGTH = 4 * MAX_LENGTHS["genre"]


class GenreCursor(PageCursor):
    """A position in the genres, sorted by folded text."""

    # Base64 of a text with four bytes a character.
    max_length = 6 * MAX_FOLDED_LENGTH
    # PostgreSQL cannot store NUL.
    folded: Annotated[str, Meta(max_length=MAX_FOLDED_LENGTH, pattern="^[^\\0]+$")]


def show_genres(request: HttpRequest) -> HttpResponse:
    pager = Pager(request.GET, GenreCursor)
    genres = pager.read(read_genres, GENRES_OF_A_PAGE)
    return render_page(
        request,
        "genres",
        _("Genres"),
        page_help=_(
            "A genre is what its books say. Rename one to change it in all of them, also to make one of two spellings."
        ),
        may_rename=request.user.has_perms([BULK_EDIT, CHANGE_BOOK]),
        most=max((genre.books for genre in genres), default=1),
        genres=[(genre, urlencode({"genre": genre.name})) for genre in genres],
        pager=pager,
    )


def read_genres(start: Start, limit: int) -> Page[GenreCount]:
    """Reads only forward."""
    [folded] = start.key or ("",)
    genres = count_genres(folded, limit + 1)
    return Page(genres[:limit], next_key=(genres[limit - 1].folded,) if len(genres) > limit else None)
