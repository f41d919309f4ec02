"""The peer with FastAPI, SQLAlchemy and asyncpg."""

import os
from collections.abc import AsyncIterator, Sequence
from datetime import UTC, datetime
from typing import Annotated
from urllib.parse import unquote

from fastapi import Depends, FastAPI, HTTPException, Query
from pydantic import BaseModel, ConfigDict
from sqlalchemy import Select, make_url, select
from sqlalchemy.exc import IntegrityError
from sqlalchemy.ext.asyncio import AsyncSession, async_sessionmaker, create_async_engine
from sqlalchemy.orm import DeclarativeBase, Mapped, mapped_column


class Base(DeclarativeBase):
    pass


class Book(Base):
    __tablename__ = "books"

    id: Mapped[int] = mapped_column(primary_key=True)
    title: Mapped[str]
    author: Mapped[str]
    year: Mapped[int]
    isbn: Mapped[str] = mapped_column(unique=True)
    genre: Mapped[str]
    available: Mapped[bool] = mapped_column(default=True)
    created_at: Mapped[datetime] = mapped_column(default=lambda: datetime.now(UTC).replace(tzinfo=None))


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
app = FastAPI(title="Library API")


async def get_session() -> AsyncIterator[AsyncSession]:
    async with make_session() as session:
        yield session


Database = Annotated[AsyncSession, Depends(get_session)]


@app.get("/api/books", response_model=list[BookRead])
async def list_books(
    session: Database,
    skip: Annotated[int, Query(ge=0)] = 0,
    limit: Annotated[int, Query(ge=1, le=500)] = 100,
    author: str | None = None,
    genre: str | None = None,
) -> Sequence[Book]:
    return (await session.scalars(select_books(author, genre).offset(skip).limit(limit))).all()


@app.get("/api/books/{book_id}", response_model=BookRead)
async def read_book(session: Database, book_id: int) -> Book:
    return await find_book(session, book_id)


@app.post("/api/books", response_model=BookRead, status_code=201)
async def create_book(session: Database, data: BookCreate) -> Book:
    book = Book(**data.model_dump())
    session.add(book)
    await commit(session)
    return book


@app.put("/api/books/{book_id}", response_model=BookRead)
async def update_book(session: Database, book_id: int, data: BookUpdate) -> Book:
    book = await find_book(session, book_id)
    for name, value in data.model_dump(exclude_unset=True).items():
        setattr(book, name, value)
    await commit(session)
    return book


@app.delete("/api/books/{book_id}")
async def delete_book(session: Database, book_id: int) -> dict[str, str]:
    await session.delete(await find_book(session, book_id))
    await session.commit()
    return {"message": "Book deleted"}


async def find_book(session: AsyncSession, book_id: int) -> Book:
    book = await session.get(Book, book_id)
    if book is None:
        raise HTTPException(404, "Book not found")
    return book


async def commit(session: AsyncSession) -> None:
    try:
        await session.commit()
    except IntegrityError as error:
        raise HTTPException(409, "A book with this ISBN exists") from error


def select_books(author: str | None, genre: str | None) -> Select[tuple[Book]]:
    query = select(Book).order_by(Book.id)
    if author:
        query = query.where(Book.author.ilike(f"%{author}%"))
    if genre:
        query = query.where(Book.genre.ilike(f"%{genre}%"))
    return query
