"""The genres of all books: to see which are written in several ways, and to rename one."""

from django.http import HttpRequest, HttpResponse
from django.utils.http import urlencode
from django.utils.translation import gettext as _

from books.admin.views import BULK_EDIT, CHANGE_BOOK, render_page
from books.members import MAX_LENGTHS
from books.search.genres import count_genres

GENRES_OF_A_PAGE = 100
# A character can have some more after it is folded.
MAX_FOLDED_LENGTH = 4 * MAX_LENGTHS["genre"]


def show_genres(request: HttpRequest) -> HttpResponse:
    behind = request.GET.get("behind", "").replace("\0", "")[:MAX_FOLDED_LENGTH]
    genres = count_genres(behind, GENRES_OF_A_PAGE + 1)
    shown = genres[:GENRES_OF_A_PAGE]
    return render_page(
        request,
        "genres",
        _("Genres"),
        page_help=_(
            "A genre is what its books say. Rename one to change it in all of them, also to make one of two spellings."
        ),
        may_rename=request.user.has_perms([BULK_EDIT, CHANGE_BOOK]),
        most=max((genre.books for genre in shown), default=1),
        genres=[(genre, urlencode({"genre": genre.name})) for genre in shown],
        next_query=urlencode({"behind": shown[-1].folded}) if len(genres) > len(shown) else "",
    )
