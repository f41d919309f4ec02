"""The facets of the list: filters with the number of books for each, and chips for the active filters."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import date
from typing import Any, NamedTuple

from django.db.models import QuerySet
from django.utils.translation import gettext as _

from books.admin.descriptions import STATES, name_state
from books.admin.list.filters import format_years
from books.book.texts import fold
from books.models import Book
from books.search.quality import NO_GENRE, QUALITIES, is_probable_year

# So many genres and decades are shown, those with the most books first.
MAX_CHOICES = 20
BuildAddress = Callable[..., str]
FacetRow = tuple[int, str, str, int, bool, str | None]


class Choice(NamedTuple):
    """`books` is None if they are not counted."""

    label: str
    address: str
    books: int | None
    is_current: bool


class Facet(NamedTuple):
    label: str
    choices: Sequence[Choice]


class FacetCounts(NamedTuple):
    genres: Sequence[tuple[str, int]]
    decades: Sequence[tuple[int, int]]
    availability: Mapping[str, int]
    qualities: Mapping[str, int]


def read_counts(numbers: Mapping[str, Any]) -> FacetCounts:
    availability = {"available": numbers["books"] - numbers["lent"], "lent": numbers["lent"]}
    return FacetCounts(numbers["genres"], numbers["decades"], availability, numbers["qualities"])


def find_known_count(counts: FacetCounts, filters: Mapping[str, Any]) -> int | None:
    """Returns the number of books of a single choice, None for other filters."""
    match filters:
        case {"genre": genre, **others} if not others:
            return {fold(name): books for name, books in counts.genres}.get(fold(genre))
        case {"availability": state, **others} if not others:
            return counts.availability.get(state)
        case {"quality": quality, **others} if not others:
            return counts.qualities.get(quality)
        case {"year_from": first, "year_to": last, **others} if not others and last == first + 9:
            return dict(counts.decades).get(first)
    return None


def read_facet_rows(books: QuerySet[Book], limit: int) -> list[FacetRow]:
    """Returns the ids and the columns that the facets count, for at most so many books, in no order. The same statement
    counts the list.
    """
    return list(books.order_by().values_list("pk", "genre_folded", "genre", "year", "available", "isbn13")[:limit])


def count_facets(rows: Iterable[FacetRow], today: date) -> FacetCounts:
    spellings: dict[str, str] = {}
    genres, decades, availability = Counter[str](), Counter[int](), Counter[str]()
    qualities = dict.fromkeys(QUALITIES, 0)
    for _pk, folded, genre, year, available, isbn13 in rows:
        if folded.strip():
            genres[spellings.setdefault(folded, genre)] += 1
        decades[year // 10 * 10] += 1
        availability[name_state(available)] += 1
        qualities["no_isbn"] += isbn13 is None
        qualities["year"] += not is_probable_year(year, today)
        qualities[NO_GENRE] += not folded.strip()
    states = {name: availability[name] for name in STATES}
    return FacetCounts(genres.most_common(), list(decades.items()), states, qualities)


def list_facets(
    counts: FacetCounts, values: Mapping[str, Any], build_address: BuildAddress, *, shows_counts: bool
) -> Iterator[Facet]:
    """Yields the facets that have choices. The link of an active choice removes it."""

    def choose(label: str, books: int | None, **parameters: Any) -> Choice:
        is_current = all(values.get(name) == value for name, value in parameters.items())
        address = build_address(**dict.fromkeys(parameters, "") if is_current else parameters)
        return Choice(label, address, books if shows_counts else None, is_current)

    decades = sorted(sorted(counts.decades, key=lambda decade: -decade[1])[:MAX_CHOICES], reverse=True)
    facets = [
        Facet(_("Genre"), [choose(name, books, genre=name) for name, books in counts.genres[:MAX_CHOICES]]),
        Facet(
            _("Decade"),
            [choose(format_years(year, year + 9), books, year_from=year, year_to=year + 9) for year, books in decades],
        ),
        Facet(
            _("Availability"),
            [choose(str(label), counts.availability.get(name), availability=name) for name, label in STATES.items()],
        ),
        Facet(
            _("To look at"),
            [choose(str(label), counts.qualities.get(name), quality=name) for name, label in QUALITIES.items()],
        ),
    ]
    yield from (facet for facet in facets if facet.choices)
