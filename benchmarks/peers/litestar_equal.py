"""The peer that promises what the library does, with Litestar, msgspec and asyncpg: each change leaves a record in the
history and an event with its deliveries, in one statement. Its database is a copy of the library's.
"""

import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from typing import Annotated
from uuid import uuid4

import asyncpg
from asyncpg import Connection, Pool, Record, UniqueViolationError
from litestar import Litestar, Request, Response, get, patch, post, put
from litestar.datastructures import State
from litestar.exceptions import NotFoundException
from litestar.params import Parameter
from msgspec import UNSET, Struct, UnsetType, structs

COLUMNS = "id, title, author, year, isbn, genre, available, created_at"
MEMBERS = "title, author, year, isbn, genre, available"
FOLDED = {"title": "title_folded", "author": "author_folded", "genre": "genre_folded"}
# What the statements below have in common: the history, the event, and a delivery for each endpoint that listens.
ANNOUNCE_SQL = """
    event AS (
        INSERT INTO webhooks_event (uuid, kind, subject, body, created_at)
        SELECT $1::uuid, $2::text, id, convert_to(json_build_object(
            'id', $1::uuid, 'event', $2::text, 'timestamp', $3::timestamptz, 'api_version', 2, 'data',
            json_build_object('book', to_json(changed), 'previous', {previous})
        )::text, 'UTF8'), $3 FROM changed RETURNING id
    ), delivery AS (
        INSERT INTO webhooks_delivery (event_id, endpoint_id)
        SELECT event.id, endpoint.id FROM event CROSS JOIN webhooks_endpoint AS endpoint
        JOIN auth_user AS owner ON owner.id = endpoint.owner_id
        WHERE endpoint.state = 'active' AND owner.is_active
        AND (endpoint.expires_at IS NULL OR endpoint.expires_at > now())
        AND (endpoint.kinds = '*' OR endpoint.kinds LIKE '%' || $2::text || '%')
    )
    SELECT {columns} FROM changed
"""
UPDATE_SQL = (
    """
    WITH old AS (SELECT * FROM books_book WHERE id = $4 FOR UPDATE),
    changed AS (
        UPDATE books_book AS book
        SET {assignments}, version = book.version + 1, updated_at = $3::timestamptz AT TIME ZONE 'utc'
        FROM old WHERE book.id = old.id RETURNING book.*
    ), history AS (
        INSERT INTO books_change (book_id, version, kind, at, actor_id, before, after)
        SELECT changed.id, changed.version, 2, $3::timestamptz AT TIME ZONE 'utc', $5, {before}, {after}
        FROM changed, old
    ),"""
    + ANNOUNCE_SQL
)
INSERT_SQL = """
    WITH changed AS (
        INSERT INTO books_book (title, author, year, isbn, genre, title_folded, author_folded, genre_folded, isbn13,
            available, version, created_at, updated_at)
        VALUES ($5::text, $6::text, $7, $8::text, $9::text, lower($5::text), lower($6::text), lower($9::text), $8::text,
            true, 1,
            $3::timestamptz AT TIME ZONE 'utc', $3::timestamptz AT TIME ZONE 'utc')
        RETURNING *
    ), history AS (
        INSERT INTO books_change (book_id, version, kind, at, actor_id)
        SELECT id, version, 1, $3::timestamptz AT TIME ZONE 'utc', $4 FROM changed
    ),""" + ANNOUNCE_SQL.format(columns=COLUMNS, previous="NULL")


class Book(Struct):
    id: int
    title: str
    author: str
    year: int
    isbn: str
    genre: str
    available: bool
    created_at: datetime


class BookCreate(Struct):
    title: str
    author: str
    year: int
    isbn: str
    genre: str


class BookUpdate(Struct):
    title: str | UnsetType = UNSET
    author: str | UnsetType = UNSET
    year: int | UnsetType = UNSET
    isbn: str | UnsetType = UNSET
    genre: str | UnsetType = UNSET


class Loan(Struct):
    available: bool


async def keep(_connection: Connection) -> None:
    """asyncpg would reset a connection after each request, with a statement of its own; nothing here needs it."""


@asynccontextmanager
async def open_pool(app: Litestar) -> AsyncIterator[None]:
    async with asyncpg.create_pool(os.environ["DATABASE_URL"], min_size=4, max_size=20, reset=keep) as pool:
        app.state.pool = pool
        app.state.actor = await pool.fetchval("SELECT min(id) FROM books_actor")
        yield


@get("/api/books")
async def list_books(
    state: State,
    skip: Annotated[int, Parameter(ge=0)] = 0,
    limit: Annotated[int, Parameter(ge=1, le=500)] = 100,
) -> list[Book]:
    query = f"SELECT {COLUMNS} FROM books_book ORDER BY id OFFSET $1 LIMIT $2"
    return [Book(*row) for row in await get_pool(state).fetch(query, skip, limit)]


@get("/api/books/{book_id:int}")
async def read_book(state: State, book_id: int) -> Book:
    return build_book(await get_pool(state).fetchrow(f"SELECT {COLUMNS} FROM books_book WHERE id = $1", book_id))


@post("/api/books")
async def create_book(state: State, data: BookCreate) -> Book:
    head = uuid4(), "book.created", datetime.now(UTC), state.actor
    return build_book(await get_pool(state).fetchrow(INSERT_SQL, *head, *structs.astuple(data)))


@put("/api/books/{book_id:int}")
async def update_book(state: State, book_id: int, data: BookUpdate) -> Book:
    values = {name: value for name, value in structs.asdict(data).items() if value is not UNSET}
    return await change(state, book_id, values) if values else await read_book.fn(state, book_id)


@patch("/api/v2/books/{book_id:int}")
async def lend_book(state: State, book_id: int, data: Loan) -> Book:
    return await change(state, book_id, {"available": data.available})


async def change(state: State, book_id: int, values: dict[str, object]) -> Book:
    """The history has the members that differ: those of the request that the book does not have already."""
    folded = {FOLDED[name]: str(value).lower() for name, value in values.items() if name in FOLDED}
    columns = {**values, **folded, **({"isbn13": values["isbn"]} if "isbn" in values else {})}
    query = build_update(tuple(columns), tuple(values))
    head = uuid4(), "book.updated", datetime.now(UTC), book_id, state.actor
    return build_book(await get_pool(state).fetchrow(query, *head, *columns.values()))


def build_update(columns: tuple[str, ...], members: tuple[str, ...]) -> str:
    if (columns, members) not in queries:
        before, after = (
            f"jsonb_strip_nulls(jsonb_build_object({', '.join(build_pair(name, side) for name in members)}))"
            for side in ("old", "changed")
        )
        assignments = ", ".join(f"{name} = ${place}" for place, name in enumerate(columns, 6))
        returned = ", ".join(f"changed.{name}" for name in COLUMNS.split(", "))
        query = UPDATE_SQL.format(
            assignments=assignments,
            before=before,
            after=after,
            columns=returned,
            previous="(SELECT to_json(old) FROM old)",
        )
        queries[columns, members] = query
    return queries[columns, members]


def build_pair(name: str, side: str) -> str:
    return f"'{name}', CASE WHEN old.{name} <> changed.{name} THEN to_jsonb({side}.{name}) END"


queries: dict[tuple[tuple[str, ...], tuple[str, ...]], str] = {}


def build_book(row: Record | None) -> Book:
    if row is None:
        raise NotFoundException("Book not found")
    return Book(*row)


def get_pool(state: State) -> Pool:
    return state.pool


def answer_duplicate(_request: Request, _error: UniqueViolationError) -> Response[dict[str, str]]:
    return Response({"detail": "A book with this ISBN exists"}, status_code=409)


app = Litestar(
    [list_books, read_book, create_book, update_book, lend_book],
    lifespan=[open_pool],
    exception_handlers={UniqueViolationError: answer_duplicate},
)
