"""What narrows a list of books further: choices with the number of books of each, and chips for what narrows it."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from django.db.models import QuerySet
from django.utils.translation import gettext as _

from books.admin.list.filters import AVAILABILITY_CHOICES
from books.admin.list.words import describe_values
from books.models import Book
from books.search.quality import QUALITIES

# So many genres and decades are offered, those with the most books.
MAX_CHOICES = 20
BuildAddress = Callable[..., str]
FacetRow = tuple[str, str, int, bool]


class Chip(NamedTuple):
    """Something that narrows the list, and the address of the list without it."""

    text: str
    address: str


class Choice(NamedTuple):
    """`books` is None where they are not counted."""

    label: str
    address: str
    books: int | None
    is_current: bool


class Facet(NamedTuple):
    label: str
    choices: Sequence[Choice]


class FacetCounts(NamedTuple):
    """Books by what they are; None for what is not counted."""

    genres: Sequence[tuple[str, int | None]]
    decades: Sequence[tuple[int, int | None]]
    availability: Mapping[str, int | None]
    qualities: Mapping[str, int | None]


def read_counts(numbers: Mapping[str, Any]) -> FacetCounts:
    """Reads those of all books from their summary."""
    availability = {"available": numbers["books"] - numbers["lent"], "lent": numbers["lent"]}
    return FacetCounts(numbers["genres"], numbers["decades"], availability, numbers["qualities"])


def hide_counts(counts: FacetCounts) -> FacetCounts:
    """The same choices for a list of which too many books match to be counted."""
    return FacetCounts(
        [(name, None) for name, _books in counts.genres],
        [(decade, None) for decade, _books in counts.decades],
        dict.fromkeys(counts.availability),
        dict.fromkeys(counts.qualities),
    )


def read_facet_rows(books: QuerySet[Book], limit: int) -> list[FacetRow]:
    """Returns what facets count of the books of a list, of so many at most. One statement counts the list, too."""
    return list(books.order_by().values_list("genre_folded", "genre", "year", "available")[:limit])


def count_facets(rows: Iterable[FacetRow]) -> FacetCounts:
    spellings: dict[str, str] = {}
    genres, decades, availability = Counter[str](), Counter[int](), Counter[str]()
    for folded, genre, year, available in rows:
        genres[spellings.setdefault(folded, genre)] += 1
        decades[year // 10 * 10] += 1
        availability["available" if available else "lent"] += 1
    states = {name: availability[name] for name in AVAILABILITY_CHOICES}
    return FacetCounts(genres.most_common(), list(decades.items()), states, {})


def list_facets(counts: FacetCounts, values: Mapping[str, Any], build_address: BuildAddress) -> Iterator[Facet]:
    """Yields the facets that offer something. A choice that narrows the list already leads to the list without it."""

    def choose(label: str, books: int | None, **parameters: Any) -> Choice:
        is_current = all(values.get(name) == value for name, value in parameters.items())
        address = build_address(**dict.fromkeys(parameters, "") if is_current else parameters)
        return Choice(label, address, books, is_current)

    decades = sorted(sorted(counts.decades, key=lambda decade: -(decade[1] or 0))[:MAX_CHOICES], reverse=True)
    facets = [
        Facet(_("Genre"), [choose(name, books, genre=name) for name, books in counts.genres[:MAX_CHOICES]]),
        Facet(
            _("Decade"),
            [choose(f"{year}–{year + 9}", books, year_from=year, year_to=year + 9) for year, books in decades],
        ),
        Facet(
            _("Availability"),
            [
                choose(str(label), counts.availability.get(name), availability=name)
                for name, (label, _available) in AVAILABILITY_CHOICES.items()
            ],
        ),
        Facet(
            _("To look at"),
            [choose(str(label), counts.qualities.get(name), quality=name) for name, label in QUALITIES.items()],
        ),
    ]
    yield from (facet for facet in facets if facet.choices)


def list_chips(values: Mapping[str, Any], build_address: BuildAddress) -> Iterator[Chip]:
    """Yields what narrows the list, but for the search; `values` are those of its form."""
    for names, text in describe_values({name: value for name, value in values.items() if value not in (None, "")}):
        yield Chip(text, build_address(**dict.fromkeys(names, "")))
