"""Gives each record its verdict: what the import does with it. The check shows the same verdicts."""

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from datetime import date, datetime
from enum import StrEnum
from typing import Any, NamedTuple

from django.utils.translation import gettext as _

from books.book.fields import REQUIRED_FIELDS
from books.book.isbn import normalize_isbn, split_record_number
from books.book.match_keys import build_work, list_words
from books.book.texts import fold_loosely
from books.book_values import BookValues
from books.files.columns.cells import is_blank
from books.files.earlier_records import EarlierRecords, RecordKey
from books.files.parsing import ImportRules, ParsedRecord
from books.files.reasons import (
    ABSENT,
    EARLIER,
    EARLIER_IN_OTHER_WRITING,
    ISBN_OF_OTHER_WORK,
    NUMBER_OF_OTHER_WORK,
    OWNED,
    OWNED_IN_OTHER_WRITING,
    SAME_BOOK,
    SAME_MAIN_TITLE,
    SAME_WORK,
    describe_line,
)
from books.history.actors import ActorRef
from books.models import FIELD_DEFAULTS, Book
from books.operations.selection_tasks import write_pairs
from books.search.duplicates import find_same_works
from books.search.quality import warn_isbn, warn_year
from books.writing import changes
from library_site.db.sql import fetch_by_texts

# A text that a spreadsheet reads as a number, which a double stores exactly.
NUMBER = re.compile(r"[0-9]{1,15}(?:[.,][0-9]{1,9})?(?:E[+-]?[0-9]{1,2})?", re.IGNORECASE | re.ASCII)
# By the key that an earlier record has, too: the field that the reason names, and what it says.
REPETITIONS = {
    RecordKey.ISBN: ("isbn", EARLIER),
    RecordKey.ID: ("id", EARLIER),
    RecordKey.BOOK: ("", SAME_BOOK),
    RecordKey.ISBN13: ("isbn", EARLIER_IN_OTHER_WRITING),
}
# Returns the books with these ids. An import locks them.
LoadBooks = Callable[[Collection[int]], Mapping[int, BookValues]]


class Verdict(StrEnum):
    """What an import does with a record. With LEFT, the book exists or should not be added.

    With WITHOUT_ISBN, the rules leave out records without an ISBN.
    """

    NEW = "new"
    CHANGED = "changed"
    SAME = "same"
    LEFT = "left"
    WITHOUT_ISBN = "no isbn"
    DOUBTFUL = "doubtful"
    REFUSED = "refused"


# The verdicts of rejected records.
REJECTED_VERDICTS = (Verdict.DOUBTFUL, Verdict.REFUSED)


class BookMatch(NamedTuple):
    """The id of the matching book, the warning about the match, and the id of the book that has the record's isbn."""

    pk: int
    warning: str = ""
    isbn_owner: int | None = None


class RecordVerdict(NamedTuple):
    """A record with its verdict. `values` are the values to write; `book` is the matching book as it is now.

    `fields` are the fields that the reason is about.
    """

    record: ParsedRecord
    name: Verdict
    reason: str = ""
    values: Mapping[str, Any] = {}
    book: BookValues | None = None
    fields: tuple[str, ...] = ()


def decide_records(
    records: Sequence[ParsedRecord], rules: ImportRules, load_books: LoadBooks, earlier: EarlierRecords, today: date
) -> list[RecordVerdict]:
    """Returns the verdict of each record, in order, and remembers the records. `today` is in UTC."""
    earlier.begin_batch(records[0].position)
    matches = list_matches([record for record in records if not (record.problem or record.is_left_out)], rules, earlier)
    books = load_books({match.pk for match in matches.values()})
    works = list_works([record for record in records if record.position not in matches], rules, earlier)
    verdicts = []
    for record in records:
        warned = add_work_warning(record, works, earlier)
        verdicts.append(decide_record(warned, matches.get(record.position), books, rules, earlier, today))
    return verdicts


def list_works(
    records: Sequence[ParsedRecord], rules: ImportRules, earlier: EarlierRecords
) -> dict[tuple[str, str], dict[int, bool]]:
    """Returns the books that new records may duplicate, as they were before the import, by title and author."""
    if rules.on_none == "leave" or rules.take_doubtful:
        return {}
    works = find_same_works([work for work in map(get_work, records) if all(work)])
    added = earlier.list_added({pk for pks in works.values() for pk in pks})
    return {work: {pk: is_same for pk, is_same in pks.items() if pk not in added} for work, pks in works.items()}


def get_work(record: ParsedRecord) -> tuple[str, str]:
    """Returns the title and the author of a new book, empty if it has none."""
    values = {**record.defaults, **record.values}
    return values.get("title", ""), values.get("author", "")


def add_work_warning(
    record: ParsedRecord, works: Mapping[tuple[str, str], Mapping[int, bool]], earlier: EarlierRecords
) -> ParsedRecord:
    """Adds the warning that a new record may be a book of the library. Ignores books that earlier records change."""
    pks = works.get(get_work(record), {})
    pk = next((pk for pk in pks if earlier.find(RecordKey.BOOK, pk) is None), None)
    if pk is None:
        return record
    return record.add_warning("title", _(SAME_WORK if pks[pk] else SAME_MAIN_TITLE) % {"id": pk})


def decide_record(
    record: ParsedRecord,
    match: BookMatch | None,
    books: Mapping[int, BookValues],
    rules: ImportRules,
    earlier: EarlierRecords,
    today: date,
) -> RecordVerdict:
    if record.problem:
        return RecordVerdict(record, Verdict.REFUSED, record.problem, fields=record.fields)
    if record.is_left_out:
        return RecordVerdict(record, Verdict.WITHOUT_ISBN)
    book = books.get(match.pk) if match else None
    keys = list_keys(record, book, rules)
    if repetition := find_repetition(record, keys, earlier):
        return RecordVerdict(record, Verdict.REFUSED, repetition, fields=("isbn",))
    if line := earlier.find(RecordKey.ISBN13, keys[RecordKey.ISBN13]):
        record = record.add_warning("isbn", describe_line(EARLIER_IN_OTHER_WRITING, record.format, line))
    for key, value in keys.items():
        earlier.remember(key, value, record.raw.line)
    if match is None or book is None:
        return decide_new(record, rules, today)
    if earlier.find(RecordKey.FORMER_ISBN, record.values.get("isbn")) is not None:
        # An earlier record gives that book another isbn, so this isbn is free.
        match = match._replace(isbn_owner=None)
    verdict = decide_match(record, match, book, rules, today)
    if verdict.name == Verdict.CHANGED and "isbn" in verdict.values:
        earlier.remember_former(book.id, book.isbn)
    return verdict


def list_keys(record: ParsedRecord, book: BookValues | None, rules: ImportRules) -> dict[RecordKey, str | int | None]:
    """Returns what a later record about the same book may have, too."""
    isbn = record.values.get("isbn")
    return {
        RecordKey.ISBN: isbn,
        # None if only the exact isbn matches.
        RecordKey.ISBN13: normalize_isbn(isbn) if isbn and rules.match_by != "isbn" else None,
        RecordKey.ID: record.pk,
        RecordKey.BOOK: book.id if book else None,
    }


def find_repetition(
    record: ParsedRecord, keys: Mapping[RecordKey, str | int | None], earlier: EarlierRecords
) -> str | None:
    """Returns why a record about the same book as an earlier record is rejected."""
    for key, (field, sentences) in REPETITIONS.items():
        # Another writing of the isbn of a book is a warning.
        is_read = key != RecordKey.ISBN13 or keys[RecordKey.BOOK] is None
        if is_read and (line := earlier.find(key, keys[key])):
            sentence = describe_line(sentences, record.format, line)
            return record.name_reason(field, sentence) if field else sentence
    return None


def read_books(pks: Collection[int]) -> Mapping[int, BookValues]:
    """Returns the books without locking them."""
    return {book.id: book for book in changes.read_rows(Book.objects.filter(pk__in=pks))}


def list_matches(records: Sequence[ParsedRecord], rules: ImportRules, earlier: EarlierRecords) -> dict[int, BookMatch]:
    """Returns the matches by record position, among the books as they were before the import."""
    given = [record.pk for record in records if record.pk is not None]
    found = Book.objects.filter(pk__in=given).values_list("pk", flat=True) if given else []
    ids = {*found} - earlier.list_added([*found])
    texts = {record.values.get("isbn", "") for record in records}
    isbns = list_ids_by_text("isbn", RecordKey.FORMER_ISBN, texts, earlier)
    matches: dict[int, BookMatch] = {}
    others: list[tuple[ParsedRecord, str | None]] = []
    for record in records:
        isbn = record.values.get("isbn", "")
        if record.pk in ids:
            matches[record.position] = BookMatch(record.pk or 0, isbn_owner=isbns.get(isbn))
        elif isbn in isbns:
            matches[record.position] = BookMatch(isbns[isbn])
        elif rules.match_by != "isbn":
            others.append((record, normalize_isbn(isbn)))
    isbn13s = list_ids_by_text("isbn13", RecordKey.FORMER_ISBN13, {isbn13 for _record, isbn13 in others}, earlier)
    for record, isbn13 in others:
        if isbn13 in isbn13s:
            pk = isbn13s[isbn13]
            warning = _(OWNED_IN_OTHER_WRITING) % {"id": pk}
            matches[record.position] = BookMatch(pk, record.name_reason("isbn", warning))
    return matches


def list_ids_by_text(
    column: str, former: RecordKey, texts: Collection[str | None], earlier: EarlierRecords
) -> dict[str | None, int]:
    """Returns for each text the lowest id of the books that had it before the import. `former` is the key of texts that
    the import has changed since.
    """
    wanted = {text for text in texts if text}
    rows = fetch_by_texts(f"SELECT {column}, id FROM books_book WHERE {column} {{}} ORDER BY id DESC", wanted)  # noqa: S608
    added = earlier.list_added([pk for _text, pk in rows])
    books = {text: pk for text, pk in rows if pk not in added and earlier.find(RecordKey.CHANGED_BOOK, pk) is None}
    for text in wanted:
        if (pk := earlier.find(former, text)) is not None:
            books[text] = min(pk, books.get(text, pk))
    return books


def decide_new(record: ParsedRecord, rules: ImportRules, today: date) -> RecordVerdict:
    values = {**FIELD_DEFAULTS, **record.defaults, **record.values}
    missing = [name for name in REQUIRED_FIELDS if name not in values]
    if rules.on_none == "leave":
        return RecordVerdict(record, Verdict.LEFT)
    if missing:
        reasons = [record.name_reason(name, _(ABSENT)) for name in missing]
        return RecordVerdict(record, Verdict.REFUSED, " ".join(reasons), fields=tuple(missing))
    return mark_doubtful(RecordVerdict(record, Verdict.NEW, values=values), rules, today)


def decide_match(
    record: ParsedRecord, match: BookMatch, book: BookValues, rules: ImportRules, today: date
) -> RecordVerdict:
    is_other = has_number_of_other_work(record, book)
    if is_other:
        match = match._replace(warning=record.name_reason("isbn", _(NUMBER_OF_OTHER_WORK) % {"id": book.id}))
    elif rules.on_match == "replace" and is_other_work(record, book):
        warning = record.name_reason("isbn", _(ISBN_OF_OTHER_WORK) % {"id": book.id})
        match = match._replace(warning=" ".join(filter(None, [match.warning, warning])))
    # A default overwrites nothing.
    given = {**record.defaults, **record.values} if rules.on_match == "fill" else record.values
    values = {name: value for name, value in given.items() if not is_same_value(getattr(book, name), value)}
    # What was imported before is no error.
    if values and (rules.on_match == "refuse" or (is_other and rules.on_match != "replace")):
        return RecordVerdict(
            record, Verdict.REFUSED, match.warning or describe_owner(record), book=book, fields=("isbn",)
        )
    if rules.on_match == "leave":
        return RecordVerdict(record, Verdict.LEFT, book=book)
    if rules.on_match == "fill":
        values = {name: value for name, value in values.items() if is_blank(getattr(book, name))}
    if not values:
        return RecordVerdict(record, Verdict.SAME, book=book)
    if "isbn" in values and match.isbn_owner is not None:
        return RecordVerdict(record, Verdict.REFUSED, describe_owner(record), values, book, ("isbn",))
    return mark_doubtful(RecordVerdict(record, Verdict.CHANGED, values=values, book=book), rules, today, match.warning)


def has_number_of_other_work(record: ParsedRecord, book: BookValues) -> bool:
    """Whether another work has the number of a record: without a source, two files can give theirs the same one."""
    title, author, isbn = (record.values.get(name, "") for name in ("title", "author", "isbn"))
    is_matched_by_number = record.has_number and record.pk != book.id and not split_record_number(isbn)[0]
    return bool(
        is_matched_by_number and title and author and build_work(title, author) != build_work(book.title, book.author)
    )


def is_other_work(record: ParsedRecord, book: BookValues) -> bool:
    """Whether neither the title nor the author has a word of the book's that the record matches by its isbn."""
    given = [(record.values.get(name, ""), getattr(book, name)) for name in ("title", "author")]
    return record.pk != book.id and all(
        new and old.strip() and set(list_words(fold_loosely(new))).isdisjoint(list_words(fold_loosely(old)))
        for new, old in given
    )


def is_same_value(old: Any, new: Any) -> bool:
    """Whether a record changes nothing. A spreadsheet writes 0042 as 42 and 3E5 as 300000."""
    if old == new or not (isinstance(old, str) and isinstance(new, str) and NUMBER.fullmatch(old)):
        return bool(old == new)
    return NUMBER.fullmatch(new) is not None and float(old.replace(",", ".")) == float(new.replace(",", "."))


def describe_owner(record: ParsedRecord) -> str:
    return record.name_reason("isbn", _(OWNED))


def mark_doubtful(verdict: RecordVerdict, rules: ImportRules, today: date, warning: str = "") -> RecordVerdict:
    """Returns the verdict of a record to write. With warnings the record is not written, unless the rules or the
    user accept them.
    """
    record = add_value_warnings(verdict.record, verdict.values, today)
    reason = " ".join(filter(None, [*record.warnings, warning]))
    if not reason or rules.take_doubtful or record.is_accepted:
        return verdict._replace(reason=reason)
    fields = (*record.fields, *(["isbn"] if warning else []))
    return verdict._replace(reason=reason, name=Verdict.DOUBTFUL, fields=fields)


def add_value_warnings(record: ParsedRecord, values: Mapping[str, Any], today: date) -> ParsedRecord:
    if "isbn" in values and not record.has_number and (warning := warn_isbn(values["isbn"])):
        record = record.add_warning("isbn", warning)
    if "year" in values and (warning := warn_year(values["year"], today)):
        record = record.add_warning("year", warning)
    return record


def write_verdicts(
    verdicts: Sequence[RecordVerdict], actor: ActorRef, now: datetime, announce: bool = True
) -> list[RecordVerdict]:
    """Writes new and changed books in the caller's transaction, in which the books are locked.

    Returns the verdicts. A record whose isbn another book got in the meantime is rejected. Raises ConcurrentChange.
    """
    pairs = [
        (verdict.book, verdict.book._replace(**verdict.book.find_changes(verdict.values, now)))
        for verdict in verdicts
        if verdict.name == Verdict.CHANGED and verdict.book
    ]
    # First the locked books: receivers of the signals of new ones may change them.
    rejected_ids = set(write_pairs(pairs, actor, now, announce))
    new_values = [verdict.values for verdict in verdicts if verdict.name == Verdict.NEW]
    new_isbns = changes.create_books(new_values, actor, now, announce)
    return [reject_conflict(verdict, new_isbns, rejected_ids) for verdict in verdicts]


def reject_conflict(verdict: RecordVerdict, new_isbns: Collection[str], rejected_ids: Collection[int]) -> RecordVerdict:
    is_lost = verdict.name == Verdict.NEW and verdict.values["isbn"] not in new_isbns
    is_taken = verdict.name == Verdict.CHANGED and verdict.book is not None and verdict.book.id in rejected_ids
    if is_lost or is_taken:
        return verdict._replace(name=Verdict.REFUSED, reason=describe_owner(verdict.record), fields=("isbn",))
    return verdict
