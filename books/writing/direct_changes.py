"""Changes a book without reading it first: one statement of PostgreSQL does both.

The statement compares the book with the new values. Where they differ, it writes the book, its record and its event,
whose JSON it makes as `books.history.records` and `books.writing.events` do.
"""

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from functools import cache
from typing import Any, NamedTuple

from django.db import models

from books.fields import format_timestamp_sql, to_naive_utc
from books.history.actors import ActorRef
from books.history.records import INSERT_RECORD_SQL
from books.members import MEMBERS
from books.models import Change
from books.rows import BookRow, add_derived_values
from books.writing.events import ALWAYS_CHANGED, BOOK_UPDATED, get_event_representation
from books.writing.statements import FIELDS, get_column_type
from webhooks.event_statements import BODY_SQL, CONDITION, ChangeParts, event_head_params, execute_with_event

CHANGE_SQL = (
    "old AS (SELECT {columns} FROM books_book WHERE id = %s),"
    " changed AS (UPDATE books_book AS book SET {assignments}, updated_at = %s, version = book.version + 1"
    " FROM old, (SELECT {values}) AS new"
    # The UPDATE may wait for another change of the row; then it sees a newer version than `old` has.
    " WHERE book.id = old.id AND book.version = old.version AND ({differences}) AND {condition}"
    " RETURNING {returned}),"
    " history AS ({insert_record} SELECT changed.id, changed.version, %s, changed.updated_at, %s, %s,"
    " ({before})::jsonb, ({after})::jsonb FROM changed, old)"
)
ENCODABLE_TYPES = models.BooleanField, models.IntegerField, models.CharField, models.TextField
CHANGED = Change.Kind.CHANGED.value


class DirectChange(NamedTuple):
    """What became of a change: the book before it, None if there is no book, and after it, None if nothing was
    written.
    """

    previous: BookRow | None
    book: BookRow | None


def change_row(pk: int, values: Mapping[str, Any], actor: ActorRef, now: datetime) -> DirectChange:
    """Writes those of the values that differ. `values` has one member or more.

    A book that differs and was not written was changed by another request at the same time.
    """
    columns, timestamp = add_derived_values(values), to_naive_utc(now)
    names = tuple(name for name in BookRow._fields if name in columns)
    new_values = [columns[name] for name in names]
    parameters = [pk, timestamp, *new_values, CHANGED, actor.id, actor.operation_id]
    changed_id, *row = execute_with_event(build_parts(names), parameters, event_head_params(BOOK_UPDATED, now))
    previous = None if row[0] is None else BookRow._make(row)
    if previous is None or changed_id is None:
        return DirectChange(previous, None)
    return DirectChange(previous, previous._replace(**columns, updated_at=timestamp, version=previous.version + 1))


@cache
def build_parts(names: tuple[str, ...]) -> ChangeParts:
    """The parts of the statement that changes these columns."""
    members = {name: name for name in MEMBERS if name in names}
    ctes = CHANGE_SQL.format(
        columns=", ".join(BookRow._fields),
        assignments=", ".join(f"{name} = new.{name}" for name in names),
        values=", ".join(f"CAST(%s AS {get_column_type(name)}) AS {name}" for name in names),
        differences=" OR ".join(f"book.{name} IS DISTINCT FROM new.{name}" for name in members),
        condition=CONDITION,
        returned=", ".join(f"book.{name}" for name in BookRow._fields),
        insert_record=INSERT_RECORD_SQL,
        before=encode_differences(members, "old"),
        after=encode_differences(members, "changed"),
    )
    columns = tuple(f"old.{name}" for name in BookRow._fields)
    return ChangeParts(ctes, BOOK_UPDATED, build_body(names), "old", columns)


def build_body(names: Sequence[str]) -> str:
    """The body of the event, whose beginning is a parameter."""
    representation = get_event_representation()
    sources = {name: str(field.source) for name, field in representation.fields.items()}
    zones = representation.time_zones
    book = ", ',', ".join(
        encode_member(name, source, "changed", zones.get(name, "")) for name, source in sources.items()
    )
    changeable = {name: source for name, source in sources.items() if source in names and name not in ALWAYS_CHANGED}
    previous = encode_differences(changeable, "old")
    data = f"""'{{"book":{{', {book}, '}},"previous":', {previous}, '}}}}'"""
    return f"{BODY_SQL} || convert_to(concat({data}), 'UTF8')"


def encode_differences(sources: Mapping[str, str], row: str) -> str:
    """SQL of a JSON object: what this row has in those members that differ in `old` and `changed`."""
    members = [
        f"CASE WHEN old.{source} IS DISTINCT FROM changed.{source}"
        f" THEN concat(',', {encode_member(name, source, row)}) END"
        for name, source in sources.items()
    ]
    return f"concat('{{', substr(concat({', '.join(members)}), 2), '}}')"


def encode_member(name: str, source: str, row: str, zone: str = "") -> str:
    """SQL of a member as JSON, byte for byte as msgspec encodes it. `zone` ends a time."""
    field, column = FIELDS[source], f"{row}.{source}"
    if isinstance(field, models.DateTimeField):
        value = f"""'"', {format_timestamp_sql(column, zone)}, '"'"""
    else:
        text = f"to_json({column})::text"
        value = f"coalesce({text}, 'null')" if field.null else text
    return f"""'"{name}":', {value}"""


def require_encodable(columns: Iterable[str]) -> None:
    """Raises TypeError for a column whose values PostgreSQL may encode in another way than msgspec."""
    if others := [name for name in columns if not is_encodable(name)]:
        raise TypeError(f"No SQL is known that encodes {', '.join(others)} as JSON.")


def is_encodable(column: str) -> bool:
    field = FIELDS[column]
    # `encode_differences` knows no times, and `encode_member` none that are null.
    is_known_time = isinstance(field, models.DateTimeField) and not field.null and column not in MEMBERS
    return is_known_time or isinstance(field, ENCODABLE_TYPES)


# When the library starts, not at the first change.
require_encodable(BookRow._fields)
