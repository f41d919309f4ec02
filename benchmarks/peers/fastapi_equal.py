"""The peer that promises what the library does, with FastAPI, SQLAlchemy and asyncpg.

Each change leaves a record in the history and an event with its deliveries, in one transaction. Its database is a copy
of the library's.
"""

import os
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from typing import Annotated, Any
from urllib.parse import unquote
from uuid import UUID, uuid4

from fastapi import Depends, FastAPI, HTTPException, Query
from pydantic import BaseModel, ConfigDict
from pydantic_core import to_json, to_jsonable_python
from sqlalchemy import DateTime, Identity, LargeBinary, make_url, select, text
from sqlalchemy.dialects.postgresql import JSONB
from sqlalchemy.exc import IntegrityError
from sqlalchemy.ext.asyncio import AsyncSession, async_sessionmaker, create_async_engine
from sqlalchemy.orm import DeclarativeBase, Mapped, mapped_column, validates


def get_now() -> datetime:
    return datetime.now(UTC).replace(tzinfo=None)


class Base(DeclarativeBase):
    pass


class Book(Base):
    __tablename__ = "books_book"

    id: Mapped[int] = mapped_column(Identity(), primary_key=True)
    title: Mapped[str]
    author: Mapped[str]
    year: Mapped[int]
    isbn: Mapped[str]
    isbn13: Mapped[str | None]
    genre: Mapped[str]
    available: Mapped[bool] = mapped_column(default=True)
    created_at: Mapped[datetime] = mapped_column(default=get_now)
    updated_at: Mapped[datetime] = mapped_column(default=get_now, onupdate=get_now)
    version: Mapped[int] = mapped_column()
    title_folded: Mapped[str]
    author_folded: Mapped[str]
    genre_folded: Mapped[str]
    __mapper_args__ = {"version_id_col": version}

    @validates("title", "author", "genre")
    def fold(self, name: str, value: str) -> str:
        setattr(self, f"{name}_folded", value.lower())
        return value

    @validates("isbn")
    def normalize(self, _name: str, value: str) -> str:
        self.isbn13 = value
        return value


class Change(Base):
    __tablename__ = "books_change"

    id: Mapped[int] = mapped_column(Identity(), primary_key=True)
    book_id: Mapped[int]
    version: Mapped[int] = mapped_column()
    kind: Mapped[int]
    at: Mapped[datetime] = mapped_column(default=get_now)
    actor_id: Mapped[int]
    before: Mapped[dict[str, Any] | None] = mapped_column(JSONB(none_as_null=True))
    after: Mapped[dict[str, Any] | None] = mapped_column(JSONB(none_as_null=True))


class Event(Base):
    __tablename__ = "webhooks_event"

    id: Mapped[int] = mapped_column(Identity(), primary_key=True)
    uuid: Mapped[UUID]
    kind: Mapped[str]
    subject: Mapped[int]
    body: Mapped[bytes] = mapped_column(LargeBinary)
    created_at: Mapped[datetime] = mapped_column(DateTime(timezone=True), default=lambda: datetime.now(UTC))


class BookCreate(BaseModel):
    title: str
    author: str
    year: int
    isbn: str
    genre: str


class BookUpdate(BaseModel):
    title: str | None = None
    author: str | None = None
    year: int | None = None
    isbn: str | None = None
    genre: str | None = None


class BookRead(BookCreate):
    model_config = ConfigDict(from_attributes=True)

    id: int
    available: bool
    created_at: datetime


url = make_url(os.environ["DATABASE_URL"])
# SQLAlchemy does not unquote the path of the socket.
engine = create_async_engine(url.set(drivername="postgresql+asyncpg", host=unquote(url.host or "")), pool_size=20)
make_session = async_sessionmaker(engine, expire_on_commit=False)
INSERT_DELIVERIES = text(
    "INSERT INTO webhooks_delivery (event_id, endpoint_id) SELECT CAST(:event AS bigint), endpoint.id"
    " FROM webhooks_endpoint AS endpoint"
    " JOIN auth_user AS owner ON owner.id = endpoint.owner_id"
    " WHERE endpoint.state = 'active' AND owner.is_active"
    " AND (endpoint.expires_at IS NULL OR endpoint.expires_at > now())"
    " AND (endpoint.kinds = '*' OR endpoint.kinds LIKE '%' || CAST(:kind AS text) || '%')"
)


@asynccontextmanager
async def get_or_create_actor(app: FastAPI) -> AsyncIterator[None]:
    async with make_session() as session:
        app.state.actor = await session.scalar(text("SELECT min(id) FROM books_actor"))
    yield


app = FastAPI(title="Library API", lifespan=get_or_create_actor)


async def get_session() -> AsyncIterator[AsyncSession]:
    async with make_session() as session:
        yield session


Database = Annotated[AsyncSession, Depends(get_session)]


@app.get("/api/books", response_model=list[BookRead])
async def list_books(
    session: Database,
    skip: Annotated[int, Query(ge=0)] = 0,
    limit: Annotated[int, Query(ge=1, le=500)] = 100,
) -> Sequence[Book]:
    return (await session.scalars(select(Book).order_by(Book.id).offset(skip).limit(limit))).all()


@app.get("/api/books/{book_id}", response_model=BookRead)
async def read_book(session: Database, book_id: int) -> Book:
    return await find_book(session, book_id)


@app.post("/api/books", response_model=BookRead, status_code=201)
async def create_book(session: Database, data: BookCreate) -> Book:
    book = Book(**data.model_dump())
    session.add(book)
    await announce(session, book, "book.created", 1, None, None)
    return book


@app.put("/api/books/{book_id}", response_model=BookRead)
async def update_book(session: Database, book_id: int, data: BookUpdate) -> Book:
    book, values = await find_book(session, book_id, lock=True), data.model_dump(exclude_unset=True)
    before = {name: getattr(book, name) for name, value in values.items() if getattr(book, name) != value}
    if not before:
        return book
    for name in before:
        setattr(book, name, values[name])
    await announce(session, book, "book.updated", 2, before, {name: values[name] for name in before})
    return book


async def announce(
    session: AsyncSession,
    book: Book,
    kind: str,
    number: int,
    before: dict[str, Any] | None,
    after: dict[str, Any] | None,
) -> None:
    """Writes the book, its history, its event and the deliveries."""
    try:
        await session.flush()
        uuid, actor = uuid4(), app.state.actor
        data = {"book": to_jsonable_python(BookRead.model_validate(book)), "previous": before}
        body = to_json({"id": uuid, "event": kind, "timestamp": datetime.now(UTC), "api_version": 2, "data": data})
        event = Event(uuid=uuid, kind=kind, subject=book.id, body=body)
        record = Change(book_id=book.id, version=book.version, kind=number, actor_id=actor, before=before, after=after)
        session.add_all([event, record])
        await session.flush()
        await session.execute(INSERT_DELIVERIES, {"event": event.id, "kind": kind})
        await session.commit()
    except IntegrityError as error:
        raise HTTPException(409, "A book with this ISBN exists") from error


async def find_book(session: AsyncSession, book_id: int, lock: bool = False) -> Book:
    book = await session.get(Book, book_id, with_for_update=lock or None)
    if book is None:
        raise HTTPException(404, "Book not found")
    return book
