"""What people type finds what is stored, whoever writes it, and version 1 finds what equals it strictly."""

import json
from collections.abc import Callable
from datetime import UTC, datetime
from importlib import import_module
from threading import Event
from types import SimpleNamespace
from typing import Any

import pytest
from django.core.management import call_command
from django.db import connection, transaction

from books.book.texts import CHARACTERS, fold_loosely, split_words
from books.models import Book, SearchText
from books.operations.worker import OperationQueue
from books.search import search_texts
from books.search.matches import has_words
from books.search.search_texts import count_differences, fold_search_texts
from books.search.texts import find_strictly, find_words
from books.search.triggers import create_missing_triggers
from books.writing import changes
from library_site.db.sql import execute
from tests.support.books import ACTOR, build_book

NOW = datetime(2026, 1, 31, 9, 30, tzinfo=UTC)
filling = import_module("books.migrations.0037_search_texts_filled")

# By language or script: what is stored and what people type, found or rightly not.
FOUND = {
    "English": [
        ("Sean O’Brien", "O'Brien"),
        ("Sean O'Casey", "O’Casey"),
        ("George Marlow", "Marlow, George"),
        ("Marlow, George", "george marlow"),
        ("1984", '"1984"'),
        ("Wait… for me", "wait..."),
        ("Quay–side stories", "quay-side"),
        ("Jean‐Paul", "Jean-Paul"),
        ("Catch  22", "catch 22"),
        ("Micro\u00adfilm", "microfilm"),
        ("data\u200bbase", "database"),
        ("The cat, the rat", "rat the cat"),
        ("O`Hara", "o'hara"),
    ],
    "German": [("Müller", "muller"), ("Muller", "MÜLLER"), ("Straße", "strasse"), ("„Faust“", '"faust"')],
    "French": [("Œuvre", "oeuvre"), ("L’Étranger", "l'etranger"), ("Ça ira", "ca ira"), ("«Élan»", "elan")],
    "Nordic and Polish": [("Ærø", "aero"), ("Søren", "soren"), ("Łódź", "lodz"), ("Þórr", "thorr"), ("Øyá", "oya")],
    "Hawaiian": [("Hawaiʻi", "hawai'i"), ("Kamakaʻeha", "kamaka'eha")],
    "Greek": [("Ὀδύσσεια", "Οδυσσεια"), ("Όμηρος", "ΟΜΗΡΟΣ"), ("ΐ", "ι"), ("Οδύσσεια", "ὀδύσσεια")],
    "Cyrillic": [("Фёдор", "федор"), ("Елка", "ёлка"), ("ТОЛСТОЙ", "толстой")],
    "Turkish": [("İstanbul", "istanbul"), ("IŞIK", "ışık"), ("Işık", "isik"), ("Çağlar", "caglar")],
    "Vietnamese": [("Nguyễn Du", "nguyen du"), ("Đường", "duong"), ("Việt", "vie\u0323\u0302t")],
    "Japanese": [("ｶﾀｶﾅ本", "カタカナ"), ("ＡＢＣの海", "abcの海"), ("山田　太郎", "山田 太郎"), ("ガ", "ｶﾞ")],
    "Chinese": [("三體，２０２０", "2020"), ("紅樓夢", "樓夢")],
    "Arabic": [("ﻛﺘﺎﺏ", "كتاب"), ("می‌خواهم", "میخواهم")],
    "Hebrew": [("שלום עולם", "עולם שלום"), ("רש״י", "רש״י")],
    "Thai": [("ภาษาไทย", "ไทย"), ("ทํา", "ทำ")],
    "Korean": [("한국", "\u1112\u1161\u11ab국")],
}
NOT_FOUND = {
    "English": [("Emma", "emmas"), ("Hare", "hair"), ("George Marlow", "marlow, anna")],
    "German": [("Müller", "mueller")],
    "Cyrillic": [("Мой", "мои")],
    "Japanese": [("ハハ", "ババ"), ("ひらがな", "ヒラガナ")],
    "Chinese": [("紅樓夢", "红楼梦")],
    "Arabic": [("كِتاب", "كتاب")],
    "Hebrew": [("שָׁלוֹם", "שלום")],
    "Thai": [("ไทย", "ไท่ย")],
}
PAIRS = [
    (*pair, is_found)
    for table, is_found in ((FOUND, True), (NOT_FOUND, False))
    for pairs in table.values()
    for pair in pairs
]


def create_book(**fields: Any) -> int:
    return changes.create_book(build_book(**fields), ACTOR, now=NOW).id


def finds(condition: Any) -> bool:
    return Book.objects.filter(condition).exists()


@pytest.mark.usefixtures("db", "scarcity")
def test_what_people_type_finds_what_is_stored() -> None:
    assert (len(PAIRS) >= 60, len(FOUND) >= 10) == (True, True)
    by_title = [build_book(title=stored, author="-", genre="-") for stored, *_ in PAIRS]
    by_author = [build_book(title="-", author=stored, genre="-") for stored, *_ in PAIRS]
    changes.create_books(by_title + by_author, ACTOR, now=NOW)
    wrong = []
    for (stored, typed, is_found), titled, written in zip(PAIRS, by_title, by_author, strict=True):
        books = Book.objects.filter(isbn__in=(titled["isbn"], written["isbn"]))
        words = split_words(typed)
        found = [books.filter(condition).count() for condition in (find_words(words), has_words(typed))]
        found.append(2 * books.filter(find_words(words, "author")).count())
        if found != [2 * is_found] * 3:
            wrong.append((stored, typed, found))
    assert wrong == []


@pytest.mark.usefixtures("db", "scarcity")
@pytest.mark.parametrize("character", ["\u00a8", "\ufdfa"])  # which fold to a word, and to four
def test_what_folds_to_many_words_is_a_search_like_others(character: str) -> None:
    text = 500 * character
    create_book(title=text, author=text)
    assert (finds(find_words(split_words(text), "author")), finds(has_words(text))) == (True, True)


@pytest.mark.parametrize("name", CHARACTERS)
def test_each_character_of_the_table_is_the_same_as_what_people_type(name: str) -> None:
    characters, typed = CHARACTERS[name]
    assert {fold_loosely(f"a{character}b") for character in characters} == {f"a{typed}b"}
    assert {fold_loosely(f"A{character.upper()}B") for character in characters} == {f"a{typed}b"}


def change_many(pk: int, title: str) -> None:
    book = changes.lock_book(pk)
    changes.change_books([(book, book._replace(**book.find_changes({"title": title}, NOW)))], ACTOR, NOW)


def save_instance(pk: int, title: str) -> None:
    book = Book.objects.get(pk=pk)
    book.title = title
    book.save()


def restore(pk: int, title: str) -> None:
    changes.change_book(pk, {"title": title}, None, ACTOR, NOW)
    changes.delete_book(pk, None, ACTOR, NOW)
    changes.restore_book(pk, ACTOR, NOW)


WRITERS: dict[str, Callable[[int, str], object]] = {
    "change": lambda pk, title: changes.change_book(pk, {"title": title}, None, ACTOR, NOW),
    "many": change_many,
    "save": save_instance,
    "restore": restore,
}


@pytest.mark.parametrize("writer", WRITERS)
def test_the_texts_follow_each_way_to_write(db: None, writer: str) -> None:
    pk = create_book(title="Łódź")
    with transaction.atomic():
        for title, typed in (("Émile", "emile"), ("Emma", "emma"), ("Ça ira", "ca ira"), ("Ça ira ", "ca ira")):
            WRITERS[writer](pk, title)
            assert (finds(find_words([typed])), finds(find_words(["lodz"]))) == (True, False)
            assert SearchText.objects.values_list("is_folded", flat=True).get(pk=pk)
    changes.delete_book(pk, None, ACTOR, NOW)
    assert not SearchText.objects.exists()


def test_books_that_are_added_together_are_found(db: None, tmp_path: Any) -> None:
    changes.create_books([build_book(title="Émile"), build_book(title="Emma"), build_book(title="Ærø")], ACTOR, now=NOW)
    assert [finds(find_words([typed])) for typed in ("emile", "emma", "aero")] == [True] * 3
    fields = {**build_book(title="Łódź"), "created_at": "2026-01-31T09:30:00Z", "updated_at": "2026-01-31T09:30:00Z"}
    path = tmp_path / "books.json"
    path.write_text(json.dumps([{"model": "books.book", "pk": 10**6, "fields": {**fields, "isbn": "fixture"}}]))
    call_command("loaddata", str(path), verbosity=0)
    assert finds(find_words(["lodz"]))


@pytest.mark.unannounced
@pytest.mark.unrecorded
def test_what_older_code_writes_is_found_strictly_and_folded_by_the_worker(db: None) -> None:
    pk = create_book(title="Łódź")
    execute("UPDATE books_book SET title = 'Émile', title_folded = 'émile' WHERE id = %s", [pk])
    found = [finds(find_words([typed], "title")) for typed in ("émile", "emile", "lodz", "łódź")]
    assert (found, finds(find_strictly("ÉMILE", "title"))) == ([True, False, False, False], True)
    queue = OperationQueue(print)
    assert [queue.process(Event()) for _ in range(3)] == [True, False, False]
    assert (finds(find_words(["emile"], "title")), count_differences()) == (True, 0)


@pytest.mark.unannounced
@pytest.mark.unrecorded
def test_what_is_missing_or_wrong_is_corrected_by_migrate(db: None) -> None:
    first, second, third = (create_book(title=title) for title in ("Émile", "Ærø", "Emma"))
    SearchText.objects.filter(pk=first).delete()
    SearchText.objects.filter(pk=second).update(title="x", strict="y")
    SearchText.objects.create(pk=third + 1, is_folded=True)
    assert count_differences() == 3
    create_missing_triggers("default")
    found = [finds(find_strictly(text, "title")) for text in ("émile", "ærø", "emma")]
    assert (count_differences(), found) == (0, [True] * 3)


def test_the_migration_enters_all_books(db: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(filling, "BATCH", 2)
    pks = [create_book(title=title) for title in ("Émile", "Emma", "Ærø", "Persuasion", "a  b")]
    SearchText.objects.exclude(pk=pks[1]).delete()
    filling.fill(None, SimpleNamespace(connection=connection))
    rows = SearchText.objects.order_by("pk").values_list("title", "is_folded")
    assert list(rows) == [("émile", False), ("emma", True), ("ærø", False), ("persuasion", True), ("a  b", False)]
    monkeypatch.setattr(search_texts, "BATCH", 2)
    assert [fold_search_texts() for _ in range(3)] == [True, True, False]
    assert [finds(find_words([typed])) for typed in ("emile", "aero", "a b")] == [True] * 3
