"""Completes the records of a file: what they leave empty is looked up by their ISBN.

A check asks the catalogues, and stores what they said; its import reads that.
"""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from itertools import islice

from django.utils.translation import gettext as _

from books.files.catalogues.entries import CatalogueLookup
from books.files.catalogues.lookup import find_remembered, look_up
from books.files.columns.cells import is_blank
from books.files.parsing import (
    COMPLETED_MEMBERS,
    Completion,
    ImportRules,
    ParsedRecord,
    find_incomplete_isbn,
    get_sources,
    list_gaps,
    parse_record,
)
from books.models import Book, ImportFile, ImportFinding

# Books that a catalogue is asked about at the same time, and the seconds that it has: a file may have thousands.
BOOKS_AT_A_TIME = 4
BOOK_SECONDS = 10
# So many failures in a row show that no catalogue answers.
MAX_FAILURES_IN_A_ROW = 8
# The kinds of findings that are no verdicts: a catalogue has the book of a record, or says nothing about it.
FOUND, NOT_FOUND = "catalogue", "unfound"


class Completer:
    """Asks for the completions of one file, until no catalogue answers any more."""

    def __init__(self) -> None:
        self.failures = 0

    def find_completions(
        self, records: Sequence[ParsedRecord], rules: ImportRules, keep_alive: Callable[[], None]
    ) -> dict[int, Completion]:
        """Returns completions by the positions of the records. Calls `keep_alive` every few seconds."""
        isbn13s = {record.position: find_incomplete_isbn(record, rules) for record in records}
        held = list_held(isbn13s.values(), rules)
        lookups = self.look_up_all((isbn13 for isbn13 in isbn13s.values() if isbn13 and isbn13 not in held), keep_alive)
        return {
            record.position: build_completion(record, rules, lookups[isbn13])
            for record in records
            if (isbn13 := isbn13s[record.position]) in lookups and isbn13
        }

    def look_up_all(self, isbn13s: Iterable[str], keep_alive: Callable[[], None]) -> dict[str, CatalogueLookup]:
        lookups: dict[str, CatalogueLookup] = {}
        rest = iter(dict.fromkeys(isbn13s))
        while group := list(islice(rest, BOOKS_AT_A_TIME)):
            lookups |= self.look_up(group)
            keep_alive()
        return lookups

    def look_up(self, isbn13s: Sequence[str]) -> dict[str, CatalogueLookup]:
        remembered = {isbn13: lookup for isbn13 in isbn13s if (lookup := find_remembered(isbn13))}
        unknown = [isbn13 for isbn13 in isbn13s if isbn13 not in remembered]
        if self.failures >= MAX_FAILURES_IN_A_ROW:
            silent = CatalogueLookup(problems=(_("No catalogue answers, so none is asked any more."),))
            return {**dict.fromkeys(unknown, silent), **remembered}
        found = look_up(unknown, BOOK_SECONDS) if unknown else []
        for lookup in found:
            self.failures = self.failures + 1 if lookup.problems and not lookup.entry else 0
        return {**dict(zip(unknown, found, strict=True)), **remembered}


def list_held(isbn13s: Collection[str | None], rules: ImportRules) -> set[str | None]:
    """Returns the ISBNs of books of the library that lack nothing: no catalogue need be asked about those.

    Where only the exact text of an ISBN counts, a record can be a new book all the same.
    """
    if rules.match_by == "isbn":
        return set()
    texts = [name for name in COMPLETED_MEMBERS if name != "year"]
    rows = Book.objects.filter(isbn13__in={*isbn13s} - {None}).values_list("isbn13", *texts)
    return {isbn13 for isbn13, *values in rows if not any(map(is_blank, values))}


def build_completion(record: ParsedRecord, rules: ImportRules, lookup: CatalogueLookup) -> Completion:
    if lookup.entry:
        gaps = list_gaps(record, rules)
        values = {name: value for name, value in lookup.entry.values.items() if name in gaps}
        return Completion(values, lookup.entry.host)
    return Completion(problem=" ".join(lookup.problems) or _("The catalogue does not have this ISBN."))


def complete_records(
    records: Sequence[ParsedRecord], completions: Mapping[int, Completion], rules: ImportRules
) -> list[ParsedRecord]:
    sources = get_sources(rules)
    return [
        parse_record(record.position, record.raw, rules, sources, completions[record.position], record.corrections)
        if record.position in completions
        else record
        for record in records
    ]


def store_completions(file: ImportFile, check_id: int, records: Sequence[ParsedRecord]) -> None:
    ImportFinding.objects.bulk_create(
        [
            ImportFinding(
                file=file,
                operation_id=check_id,
                kind=FOUND if record.completion.host else NOT_FOUND,
                position=record.position,
                line=record.raw.line,
                reason=record.completion.host or record.completion.problem,
                after=dict(record.completion.values),
            )
            for record in records
            if record.completion
        ]
    )


def load_completions(file: ImportFile, check_id: int, positions: Sequence[int]) -> dict[int, Completion]:
    """Returns what a check stored about these records, by their positions."""
    findings = ImportFinding.objects.filter(
        file=file, operation_id=check_id, kind__in=(FOUND, NOT_FOUND), position__in=positions
    )
    return {finding.position: read_completion(finding) for finding in findings}


def count_completed(file: ImportFile) -> int:
    """Returns how many records catalogues knew in the latest check."""
    return ImportFinding.objects.filter(file=file, operation_id=file.check_operation_id or 0, kind=FOUND).count()


def read_completion(finding: ImportFinding) -> Completion:
    if finding.kind == FOUND:
        return Completion(finding.after or {}, finding.reason)
    return Completion(problem=finding.reason)
