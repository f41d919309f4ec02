"""The table, the schemas and the address of the database, which both FastAPI peers use."""

import os
from datetime import UTC, datetime
from urllib.parse import unquote

from pydantic import BaseModel, ConfigDict
from sqlalchemy import URL, Select, make_url, select
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


def database_url(driver: str) -> URL:
    """The address with this driver. SQLAlchemy does not unquote the path of the socket, so this function does."""
    url = make_url(os.environ["DATABASE_URL"])
    return url.set(drivername=f"postgresql+{driver}", host=unquote(url.host or ""))


def select_books(author: str | None, genre: str | None) -> Select[tuple[Book]]:
    query = select(Book).order_by(Book.id)
    if author:
        query = query.where(Book.author.ilike(f"%{author}%"))
    if genre:
        query = query.where(Book.genre.ilike(f"%{genre}%"))
    return query
