"""Judges what becomes of records: the same judgements are shown before an import and written by it."""

from collections.abc import Callable, Collection, Mapping, Sequence
from datetime import datetime
from enum import StrEnum
from typing import Any, NamedTuple

from django.utils.translation import gettext as _

from books import changes
from books.exchange.candidates import REQUIRED_MEMBERS, Candidate, ImportRules
from books.exchange.formats.records import name_member
from books.history.actors import ActorRef
from books.isbn import normalize_isbn
from books.models import Book
from books.operations.edits import write_pairs
from books.rows import BookRow

# Returns the books with these ids; locked, if they are to be written.
LoadBooks = Callable[[Collection[int]], Mapping[int, BookRow]]


class Kind(StrEnum):
    """What becomes of a record. A book that it leaves is there, or is not to be added."""

    NEW = "new"
    CHANGED = "changed"
    SAME = "same"
    LEFT = "left"
    DOUBTFUL = "doubtful"
    REFUSED = "refused"


# Records of these come back.
RETURNED_KINDS = (Kind.DOUBTFUL, Kind.REFUSED)


class Match(NamedTuple):
    """The id of the book that a record is about, and what is doubtful about that."""

    pk: int
    doubt: str = ""


class Judgement(NamedTuple):
    """`values` are those to be written; `book` is the one that the record matches, as it is."""

    candidate: Candidate
    kind: Kind
    reason: str = ""
    values: Mapping[str, Any] = {}
    book: BookRow | None = None


def judge_records(candidates: Sequence[Candidate], rules: ImportRules, load_books: LoadBooks) -> list[Judgement]:
    """Returns a judgement of each record, in order. Takes four queries at most."""
    matches = find_matches([candidate for candidate in candidates if not candidate.problem], rules)
    books = load_books({match.pk for match in matches.values()})
    first_lines: dict[int, int] = {}
    judgements = []
    for candidate in candidates:
        match = matches.get(candidate.position)
        book = books.get(match.pk) if match else None
        if candidate.problem:
            judgements.append(Judgement(candidate, Kind.REFUSED, candidate.problem))
        elif match is None or book is None:
            judgements.append(judge_new(candidate, rules))
        elif first_line := first_lines.get(book.id):
            judgements.append(Judgement(candidate, Kind.REFUSED, describe_repetition(first_line)))
        else:
            first_lines[book.id] = candidate.record.line
            judgements.append(judge_match(candidate, match, book, rules))
    return judgements


def describe_repetition(line: int) -> str:
    return _("It is about the same book as line %(line)s.") % {"line": line}


def read_books(pks: Collection[int]) -> Mapping[int, BookRow]:
    """Returns the books without locking them."""
    return {book.id: book for book in changes.read_rows(Book.objects.filter(pk__in=pks))}


def find_matches(candidates: Sequence[Candidate], rules: ImportRules) -> dict[int, Match]:
    """Returns the matches by the positions of the records."""
    ids = find_ids([candidate.pk for candidate in candidates if candidate.pk is not None])
    isbns = find_by("isbn", [candidate.values.get("isbn") for candidate in candidates])
    matches: dict[int, Match] = {}
    others: dict[int, str | None] = {}
    for candidate in candidates:
        isbn = candidate.values.get("isbn", "")
        if candidate.pk in ids:
            matches[candidate.position] = Match(candidate.pk or 0)
        elif isbn in isbns:
            matches[candidate.position] = Match(isbns[isbn])
        elif rules.match_by != "isbn":
            others[candidate.position] = normalize_isbn(isbn)
    isbn13s = find_by("isbn13", list(others.values()))
    for position, isbn13 in others.items():
        if isbn13 in isbn13s:
            pk = isbn13s[isbn13]
            doubt = _("Book %(id)s has it in another writing.") % {"id": pk}
            matches[position] = Match(pk, name_member("isbn", doubt))
    return matches


def find_ids(pks: Collection[int]) -> set[int]:
    return set(Book.objects.filter(pk__in=pks).values_list("pk", flat=True)) if pks else set()


def find_by(column: str, texts: Collection[str | None]) -> dict[str | None, int]:
    """Returns the id of the first book with each of these texts."""
    wanted = {text for text in texts if text}
    rows = Book.objects.filter(**{f"{column}__in": wanted}).order_by("-pk").values_list(column, "pk") if wanted else []
    return dict(rows)


def judge_new(candidate: Candidate, rules: ImportRules) -> Judgement:
    missing = [name for name in REQUIRED_MEMBERS if name not in candidate.values]
    if rules.on_none == "leave":
        return Judgement(candidate, Kind.LEFT)
    if missing:
        reasons = [name_member(name, _("This field is required.")) for name in missing]
        return Judgement(candidate, Kind.REFUSED, " ".join(reasons))
    return hold_doubtful(Judgement(candidate, Kind.NEW, values={"available": True, **candidate.values}), rules)


def judge_match(candidate: Candidate, match: Match, book: BookRow, rules: ImportRules) -> Judgement:
    if rules.on_match == "refuse":
        return Judgement(candidate, Kind.REFUSED, match.doubt or describe_owner(), book=book)
    if rules.on_match == "leave":
        return Judgement(candidate, Kind.LEFT, book=book)
    values = {name: value for name, value in candidate.values.items() if getattr(book, name) != value}
    if rules.on_match == "fill":
        values = {name: value for name, value in values.items() if is_gap(getattr(book, name))}
    if not values:
        return Judgement(candidate, Kind.SAME, book=book)
    return hold_doubtful(Judgement(candidate, Kind.CHANGED, values=values, book=book), rules, match.doubt)


def describe_owner() -> str:
    return name_member("isbn", _("Another book has it."))


def is_gap(value: Any) -> bool:
    return isinstance(value, str) and not value.strip()


def hold_doubtful(judgement: Judgement, rules: ImportRules, doubt: str = "") -> Judgement:
    """Returns the judgement of a record that would be written: with doubts it is not, unless the rules take those."""
    reason = " ".join(filter(None, [*judgement.candidate.doubts, doubt]))
    is_held = reason and not rules.take_doubtful
    return judgement._replace(reason=reason, kind=Kind.DOUBTFUL if is_held else judgement.kind)


def write_judgements(
    judgements: Sequence[Judgement], actor: ActorRef, now: datetime, announce: bool = True
) -> list[Judgement]:
    """Writes what is new and changed in the caller's transaction, in which the books are locked.

    Returns the judgements; a record whose isbn another book got in the meantime is refused. Raises ConcurrentChange.
    """
    new_values = [judgement.values for judgement in judgements if judgement.kind == Kind.NEW]
    new_isbns = changes.add_books(new_values, actor, now, announce)
    pairs = [
        (judgement.book, judgement.book._replace(**judgement.book.find_changes(judgement.values, now)))
        for judgement in judgements
        if judgement.kind == Kind.CHANGED and judgement.book
    ]
    refused_ids = set(write_pairs(pairs, actor, now, announce))
    return [refuse_conflict(judgement, new_isbns, refused_ids) for judgement in judgements]


def refuse_conflict(judgement: Judgement, new_isbns: Collection[str], refused_ids: Collection[int]) -> Judgement:
    is_lost = judgement.kind == Kind.NEW and judgement.values["isbn"] not in new_isbns
    is_taken = judgement.kind == Kind.CHANGED and judgement.book is not None and judgement.book.id in refused_ids
    return judgement._replace(kind=Kind.REFUSED, reason=describe_owner()) if is_lost or is_taken else judgement
