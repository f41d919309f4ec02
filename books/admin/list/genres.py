"""The genres of all books: shows genres with several spellings, and gives one name to some."""

import json
from collections.abc import Sequence
from functools import partial
from typing import Annotated

from django.contrib import messages
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import reverse
from django.utils import timezone
from django.utils.http import urlencode
from django.utils.translation import gettext as _
from msgspec import Meta

from books.admin.list.filters import MAX_GENRES, MAX_IDS_LENGTH, build_genre_filter
from books.admin.pager import Pager
from books.admin.views import render_page
from books.book.fields import MAX_LENGTHS
from books.permissions import OPERATION_KINDS
from books.summaries import BOOKS, MAX_COUNTED_GENRES, GenreCount, count_genres, find_count_time, read_summary
from library_site.api.cursors import Cursor
from library_site.db.keyset import Page, Start

GENRES_OF_A_PAGE = MAX_GENRES
# Folding can turn one character into several.
MAX_FOLDED_LENGTH = 4 * MAX_LENGTHS["genre"]


# PostgreSQL cannot store NUL; base64 of a text with four bytes a character.
GENRE_CURSOR = Cursor(
    bool, Annotated[str, Meta(max_length=MAX_FOLDED_LENGTH, pattern="^[^\\0]+$")], max_length=6 * MAX_FOLDED_LENGTH
)


def show_genres(request: HttpRequest) -> HttpResponse:
    """Lists genres. A POST leads to the preview of a bulk edit, which gives the books of several genres one name."""
    if request.method == "POST":
        names = request.POST.getlist("genres")
        text = json.dumps(names, ensure_ascii=False)
        is_short = len(names) <= MAX_GENRES and len(text) <= MAX_IDS_LENGTH
        if names and is_short:
            address = f"{reverse('admin:bulk_edit')}?{urlencode({'genres': text})}"
            return HttpResponseRedirect(address, preserve_request=True)
        messages.error(request, _("Tick the genres to rename.") if is_short else _("Tick fewer genres at once."))
    pager, now = Pager(request.GET, GENRE_CURSOR), timezone.now()
    summary = read_summary(BOOKS, now)
    counted = [GenreCount(*row) for row in summary.numbers.get("first_genres", ())]
    genres = join_blank_genres(pager.read(partial(read_genres, counted), GENRES_OF_A_PAGE))
    return render_page(
        request,
        "genres",
        _("Genres"),
        page_help=_("Each book names its genre. Tick one to rename it in all its books, or several to make them one."),
        may_rename=request.user.has_perms(OPERATION_KINDS["edit"]),
        has_spellings=any(genre.spellings > 1 for genre in genres),
        most=max((genre.books for genre in genres), default=1),
        counted_at=find_count_time(summary, now),
        genres=[(genre, urlencode(build_genre_filter(genre.name))) for genre in genres],
        pager=pager,
    )


def join_blank_genres(genres: Sequence[GenreCount]) -> list[GenreCount]:
    """Returns the genres with one line for all books without a genre. Some have blanks in its place."""
    blank = [genre for genre in genres if not genre.name.strip()]
    books = sum(genre.books for genre in blank)
    return [*([GenreCount("", "", 1, books)] if blank else []), *(genre for genre in genres if genre.name.strip())]


def read_genres(counted: Sequence[GenreCount], start: Start, limit: int) -> Page[GenreCount]:
    """Reads only forward. If there are more genres than the summary has, the next ones are counted now. In a small
    library it has none.
    """
    [folded] = start.key or ("",)
    genres = [genre for genre in counted if not start.key or genre.folded > folded]
    if len(genres) <= limit and len(counted) in (0, MAX_COUNTED_GENRES):
        genres = count_genres(folded, limit + 1)
    return Page(genres[:limit], next_key=(genres[limit - 1].folded,) if len(genres) > limit else None)
