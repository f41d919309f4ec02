"""Judges what becomes of records: the same judgements are shown before an import and written by it."""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from datetime import date, datetime
from enum import StrEnum
from typing import Any, NamedTuple

from django.utils.translation import gettext as _

from books.files.earlier_records import EarlierRecords, Key
from books.files.formats.records import name_member
from books.files.parsing import REQUIRED_MEMBERS, Candidate, ImportRules
from books.history.actors import ActorRef
from books.isbn import normalize_isbn
from books.models import Book
from books.operations.edits import write_pairs
from books.rows import BookRow
from books.search.doubts import doubt_isbn, doubt_year
from books.writing import changes

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


# The columns of what records match by, and what stands for them in books whose isbn the import has changed.
KEY_COLUMNS = {Key.ISBN: ("isbn", Key.FORMER_ISBN), Key.ISBN13: ("isbn13", Key.FORMER_ISBN13)}
# Records of these come back.
RETURNED_KINDS = (Kind.DOUBTFUL, Kind.REFUSED)


class Match(NamedTuple):
    """The id of the book that a record is about, what is doubtful about that, and the id of the owner of its isbn."""

    pk: int
    doubt: str = ""
    owner: int | None = None


class Judgement(NamedTuple):
    """`values` are those to be written; `book` is the one that the record matches, as it is."""

    candidate: Candidate
    kind: Kind
    reason: str = ""
    values: Mapping[str, Any] = {}
    book: BookRow | None = None


def judge_records(
    candidates: Sequence[Candidate], rules: ImportRules, load_books: LoadBooks, earlier: EarlierRecords, today: date
) -> list[Judgement]:
    """Returns a judgement of each record, in order, and remembers the records as earlier ones. `today` is in UTC."""
    earlier.begin_batch(candidates[0].position)
    matches = find_matches([candidate for candidate in candidates if not candidate.problem], rules, earlier)
    books = load_books({match.pk for match in matches.values()})
    return [
        judge_record(candidate, matches.get(candidate.position), books, rules, earlier, today)
        for candidate in candidates
    ]


def judge_record(
    candidate: Candidate,
    match: Match | None,
    books: Mapping[int, BookRow],
    rules: ImportRules,
    earlier: EarlierRecords,
    today: date,
) -> Judgement:
    if candidate.problem:
        return Judgement(candidate, Kind.REFUSED, candidate.problem)
    book = books.get(match.pk) if match else None
    isbn13 = find_isbn13(candidate, rules)
    if repetition := find_repetition(candidate, isbn13, book, earlier):
        return Judgement(candidate, Kind.REFUSED, repetition)
    if line := earlier.find(Key.ISBN13, isbn13):
        candidate = candidate._replace(doubts=(*candidate.doubts, describe_other_writing(line)))
    remember_record(candidate, isbn13, book, earlier)
    if match is None or book is None:
        return judge_new(candidate, rules, today)
    if earlier.find(Key.FORMER_ISBN, candidate.values.get("isbn")) is not None:
        # An earlier record gives the book another isbn, so this one is free.
        match = match._replace(owner=None)
    judgement = judge_match(candidate, match, book, rules, today)
    if judgement.kind == Kind.CHANGED and "isbn" in judgement.values:
        earlier.remember_former(book.id, book.isbn)
    return judgement


def find_isbn13(candidate: Candidate, rules: ImportRules) -> str | None:
    """Returns the ISBN that counts in any writing, None if only the isbn counts."""
    return None if rules.match_by == "isbn" else normalize_isbn(candidate.values.get("isbn", ""))


def find_repetition(
    candidate: Candidate, isbn13: str | None, book: BookRow | None, earlier: EarlierRecords
) -> str | None:
    """Returns why a record is refused that is about the same book as an earlier one."""
    if line := earlier.find(Key.ISBN, candidate.values.get("isbn")):
        return name_member("isbn", describe_earlier(line))
    if line := earlier.find(Key.ID, candidate.pk):
        return name_member("id", describe_earlier(line))
    if book:
        line = earlier.find(Key.BOOK, book.id)
        return _("It is about the same book as line %(line)s.") % {"line": line} if line else None
    line = earlier.find(Key.ISBN13, isbn13)
    return describe_other_writing(line) if line else None


def describe_earlier(line: int) -> str:
    return _("The book on line %(line)s has it.") % {"line": line}


def describe_other_writing(line: int) -> str:
    return name_member("isbn", _("The book on line %(line)s has it in another writing.") % {"line": line})


def remember_record(candidate: Candidate, isbn13: str | None, book: BookRow | None, earlier: EarlierRecords) -> None:
    line = candidate.record.line
    earlier.remember(Key.ISBN, candidate.values.get("isbn"), line)
    earlier.remember(Key.ISBN13, isbn13, line)
    earlier.remember(Key.ID, candidate.pk, line)
    earlier.remember(Key.BOOK, book.id if book else None, line)


def read_books(pks: Collection[int]) -> Mapping[int, BookRow]:
    """Returns the books without locking them."""
    return {book.id: book for book in changes.read_rows(Book.objects.filter(pk__in=pks))}


def find_matches(candidates: Sequence[Candidate], rules: ImportRules, earlier: EarlierRecords) -> dict[int, Match]:
    """Returns the matches by the positions of the records, among the books as they were before the import."""
    ids = find_ids([candidate.pk for candidate in candidates if candidate.pk is not None], earlier)
    isbns = find_by(Key.ISBN, [candidate.values.get("isbn") for candidate in candidates], earlier)
    matches: dict[int, Match] = {}
    others: dict[int, str | None] = {}
    for candidate in candidates:
        isbn = candidate.values.get("isbn", "")
        if candidate.pk in ids:
            matches[candidate.position] = Match(candidate.pk or 0, owner=isbns.get(isbn))
        elif isbn in isbns:
            matches[candidate.position] = Match(isbns[isbn])
        elif rules.match_by != "isbn":
            others[candidate.position] = normalize_isbn(isbn)
    isbn13s = find_by(Key.ISBN13, list(others.values()), earlier)
    for position, isbn13 in others.items():
        if isbn13 in isbn13s:
            pk = isbn13s[isbn13]
            doubt = _("Book %(id)s has it in another writing.") % {"id": pk}
            matches[position] = Match(pk, name_member("isbn", doubt))
    return matches


def find_ids(pks: Collection[int], earlier: EarlierRecords) -> set[int]:
    ids = set(Book.objects.filter(pk__in=pks).values_list("pk", flat=True)) if pks else set()
    return ids - earlier.find_added(ids)


def find_by(key: Key, texts: Collection[str | None], earlier: EarlierRecords) -> dict[str | None, int]:
    """Returns the id of the first book with each of these texts."""
    column, former = KEY_COLUMNS[key]
    wanted = {text for text in texts if text}
    rows = Book.objects.filter(**{f"{column}__in": wanted}).order_by("-pk").values_list(column, "pk") if wanted else []
    added = earlier.find_added([pk for _text, pk in rows])
    books = {text: pk for text, pk in rows if pk not in added and earlier.find(Key.CHANGED_BOOK, pk) is None}
    for text in wanted:
        if (pk := earlier.find(former, text)) is not None:
            books[text] = min(pk, books.get(text, pk))
    return books


def judge_new(candidate: Candidate, rules: ImportRules, today: date) -> Judgement:
    missing = [name for name in REQUIRED_MEMBERS if name not in candidate.values]
    if rules.on_none == "leave":
        return Judgement(candidate, Kind.LEFT)
    if missing:
        reasons = [name_member(name, _("This field is required.")) for name in missing]
        return Judgement(candidate, Kind.REFUSED, " ".join(reasons))
    return hold_doubtful(Judgement(candidate, Kind.NEW, values={"available": True, **candidate.values}), rules, today)


def judge_match(candidate: Candidate, match: Match, book: BookRow, rules: ImportRules, today: date) -> Judgement:
    if rules.on_match == "refuse":
        return Judgement(candidate, Kind.REFUSED, match.doubt or describe_owner(), book=book)
    if rules.on_match == "leave":
        return Judgement(candidate, Kind.LEFT, book=book)
    values = {name: value for name, value in candidate.values.items() if getattr(book, name) != value}
    if rules.on_match == "fill":
        values = {name: value for name, value in values.items() if is_gap(getattr(book, name))}
    if not values:
        return Judgement(candidate, Kind.SAME, book=book)
    if "isbn" in values and match.owner is not None:
        return Judgement(candidate, Kind.REFUSED, describe_owner(), values=values, book=book)
    return hold_doubtful(Judgement(candidate, Kind.CHANGED, values=values, book=book), rules, today, match.doubt)


def describe_owner() -> str:
    return name_member("isbn", _("Another book has it."))


def is_gap(value: Any) -> bool:
    return isinstance(value, str) and not value.strip()


def hold_doubtful(judgement: Judgement, rules: ImportRules, today: date, doubt: str = "") -> Judgement:
    """Returns the judgement of a record that would be written: with doubts it is not, unless the rules take those."""
    doubts = [*judgement.candidate.doubts, *find_doubts(judgement.values, today), doubt]
    reason = " ".join(filter(None, doubts))
    is_held = reason and not rules.take_doubtful
    return judgement._replace(reason=reason, kind=Kind.DOUBTFUL if is_held else judgement.kind)


def find_doubts(values: Mapping[str, Any], today: date) -> Iterator[str]:
    """Yields the doubts about values that would be written."""
    if "isbn" in values and (doubt := doubt_isbn(values["isbn"])):
        yield name_member("isbn", doubt)
    if "year" in values and (doubt := doubt_year(values["year"], today)):
        yield name_member("year", doubt)


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
