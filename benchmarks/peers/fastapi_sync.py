"""The peer with FastAPI and SQLAlchemy, without async."""

from collections.abc import Iterator, Sequence
from typing import Annotated

from fastapi import Depends, FastAPI, HTTPException, Query
from fastapi_models import Book, BookCreate, BookRead, BookUpdate, database_url, select_books
from sqlalchemy import create_engine
from sqlalchemy.exc import IntegrityError
from sqlalchemy.orm import Session, sessionmaker

engine = create_engine(database_url("psycopg"), pool_size=20)
make_session = sessionmaker(engine, expire_on_commit=False)
app = FastAPI(title="Library API")


def get_session() -> Iterator[Session]:
    with make_session() as session:
        yield session


Database = Annotated[Session, Depends(get_session)]


@app.get("/api/books", response_model=list[BookRead])
def list_books(
    session: Database,
    skip: Annotated[int, Query(ge=0)] = 0,
    limit: Annotated[int, Query(ge=1, le=500)] = 100,
    author: str | None = None,
    genre: str | None = None,
) -> Sequence[Book]:
    return session.scalars(select_books(author, genre).offset(skip).limit(limit)).all()


@app.get("/api/books/{book_id}", response_model=BookRead)
def read_book(session: Database, book_id: int) -> Book:
    return find_book(session, book_id)


@app.post("/api/books", response_model=BookRead, status_code=201)
def create_book(session: Database, data: BookCreate) -> Book:
    book = Book(**data.model_dump())
    session.add(book)
    commit(session)
    return book


@app.put("/api/books/{book_id}", response_model=BookRead)
def update_book(session: Database, book_id: int, data: BookUpdate) -> Book:
    book = find_book(session, book_id)
    for name, value in data.model_dump(exclude_unset=True).items():
        setattr(book, name, value)
    commit(session)
    return book


@app.delete("/api/books/{book_id}")
def delete_book(session: Database, book_id: int) -> dict[str, str]:
    session.delete(find_book(session, book_id))
    session.commit()
    return {"message": "Book deleted"}


def find_book(session: Session, book_id: int) -> Book:
    book = session.get(Book, book_id)
    if book is None:
        raise HTTPException(404, "Book not found")
    return book


def commit(session: Session) -> None:
    try:
        session.commit()
    except IntegrityError as error:
        raise HTTPException(409, "A book with this ISBN exists") from error
