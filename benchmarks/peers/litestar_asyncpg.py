"""The peer with Litestar, msgspec and asyncpg, without an ORM."""

import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import datetime
from typing import Annotated

import asyncpg
from asyncpg import Connection, Pool, Record, UniqueViolationError
from litestar import Litestar, Request, Response, delete, get, post, put
from litestar.datastructures import State
from litestar.exceptions import NotFoundException
from litestar.params import Parameter
from msgspec import UNSET, Struct, UnsetType, structs

COLUMNS = "id, title, author, year, isbn, genre, available, created_at"


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


async def keep(_connection: Connection) -> None:
    """asyncpg would reset a connection after each request, with a statement of its own; nothing here needs it."""


@asynccontextmanager
async def open_pool(app: Litestar) -> AsyncIterator[None]:
    async with asyncpg.create_pool(os.environ["DATABASE_URL"], min_size=4, max_size=20, reset=keep) as pool:
        app.state.pool = pool
        yield


@get("/api/books")
async def list_books(
    state: State,
    skip: Annotated[int, Parameter(ge=0)] = 0,
    limit: Annotated[int, Parameter(ge=1, le=500)] = 100,
    author: str | None = None,
    genre: str | None = None,
) -> list[Book]:
    conditions: list[str] = ["true"]
    values: list[int | str] = [skip, limit]
    for column, part in (("author", author), ("genre", genre)):
        if part:
            values.append(f"%{part}%")
            conditions.append(f"{column} ILIKE ${len(values)}")
    where = " AND ".join(conditions)
    query = f"SELECT {COLUMNS} FROM books WHERE {where} ORDER BY id OFFSET $1 LIMIT $2"
    return [Book(*row) for row in await get_pool(state).fetch(query, *values)]


@get("/api/books/{book_id:int}")
async def read_book(state: State, book_id: int) -> Book:
    return build_book(await get_pool(state).fetchrow(f"SELECT {COLUMNS} FROM books WHERE id = $1", book_id))


@post("/api/books")
async def create_book(state: State, data: BookCreate) -> Book:
    query = f"INSERT INTO books (title, author, year, isbn, genre) VALUES ($1, $2, $3, $4, $5) RETURNING {COLUMNS}"
    return build_book(await get_pool(state).fetchrow(query, *structs.astuple(data)))


@put("/api/books/{book_id:int}")
async def update_book(state: State, book_id: int, data: BookUpdate) -> Book:
    present = {name: value for name, value in structs.asdict(data).items() if value is not UNSET}
    if not present:
        return await read_book.fn(state, book_id)
    changes = ", ".join(f"{name} = ${place}" for place, name in enumerate(present, 2))
    query = f"UPDATE books SET {changes} WHERE id = $1 RETURNING {COLUMNS}"
    return build_book(await get_pool(state).fetchrow(query, book_id, *present.values()))


@delete("/api/books/{book_id:int}", status_code=200)
async def delete_book(state: State, book_id: int) -> dict[str, str]:
    build_book(await get_pool(state).fetchrow(f"DELETE FROM books WHERE id = $1 RETURNING {COLUMNS}", book_id))
    return {"message": "Book deleted"}


def build_book(row: Record | None) -> Book:
    if row is None:
        raise NotFoundException("Book not found")
    return Book(*row)


def get_pool(state: State) -> Pool:
    return state.pool


def answer_duplicate(_request: Request, _error: UniqueViolationError) -> Response[dict[str, str]]:
    return Response({"detail": "A book with this ISBN exists"}, status_code=409)


app = Litestar(
    [list_books, read_book, create_book, update_book, delete_book],
    lifespan=[open_pool],
    exception_handlers={UniqueViolationError: answer_duplicate},
)
