"""Books to begin with: real classics first, then plausible ones, the same for the same seed."""

import csv
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from faker import Faker
from stdnum import ean

CLASSICS = Path(__file__).parent / "data" / "classics.csv"
# No agency hands out 979-9. Ours: 979-9, a digit for the seed, seven for the book; 9 is the classics'.
SEEDS = range(9)
BOOKS_PER_SEED = 10_000_000

LOCALES = ["en_GB", "fr_FR", "de_DE", "es_ES", "pl_PL", "pt_BR", "sv_SE", "tr_TR", "cs_CZ", "el_GR", "ru_RU", "ja_JP"]
PLACE_LOCALES = LOCALES[:7]
GENRES = ["Novel", "Mystery", "Fantasy", "Science Fiction", "Poetry", "History", "Memoir", "Children", "Essay", "Drama"]
NOUNS = """
    Archive Ash Atlas Bell Bird Boat Bridge Candle Cartographer Cathedral Clock Coast Compass Country Daughter
    Desert Dream Echo Empire Field Fire Forest Garden Ghost Glass Harbour Heart Hill Horizon House Island
    Journey Key Lamp Letter Library Lighthouse Map Memory Mirror Moon Mountain Music Night Ocean Orchard Painter
    Paper Promise Rain River Road Room Sea Shadow Silence Snow Song Star Stone Storm Stranger Summer Thread
    Tower Train Tree Valley Voice Voyage Wall Water Wind Window Winter
""".split()
ADJECTIVES = """
    Amber Ancient Blue Borrowed Broken Burning Crimson Distant Drowned Early Empty Endless Faithful Familiar
    Forgotten Golden Hidden Hollow Invisible Last Late Little Lonely Long Lost Narrow Nameless New Northern Old
    Open Other Pale Patient Quiet Restless Second Secret Silver Silent Slow Small Strange Sunken Tender Third
    Unfinished Wandering White Wild Winter Wooden
""".split()
TITLE_PATTERNS = [
    "The {adjective} {noun}",
    "The {noun} of {place}",
    "{noun} and {noun2}",
    "The {noun} in {place}",
    "{place}: The {noun}",
    "Return to {place}",
    "The {adjective} {noun} of {place}",
    "{place} and the {adjective} {noun}",
]


def iter_books(count: int, seed: int) -> Iterator[dict[str, Any]]:
    """The first `count` books of a seed, as values of a creation."""
    found = 0
    for found, book in enumerate(read_classics(), 1):
        if found > count:
            return
        yield book
    yield from generate_books(count - found, seed)


def read_classics() -> Iterator[dict[str, Any]]:
    with CLASSICS.open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            yield {**row, "year": int(row["year"])}


def generate_books(count: int, seed: int) -> Iterator[dict[str, Any]]:
    chance = random.Random(seed)
    words = TitleGenerator(seed)
    for number in range(count):
        yield {
            "title": words.title(chance),
            "author": chance.choice(words.authors),
            "year": int(chance.triangular(1850, 2025, 2015)),
            "isbn": make_isbn(seed, number),
            "genre": chance.choice(GENRES),
        }


def make_isbn(seed: int, number: int) -> str:
    """An ISBN-13 of our own range, with its check digit (ISO 2108)."""
    digits = f"9799{seed}{number:07d}"
    return digits + ean.calc_check_digit(digits)


class TitleGenerator:
    """The names that books are made of: Faker is too slow to be asked for every book of a million."""

    def __init__(self, seed: int) -> None:
        fakes = Faker(LOCALES)
        fakes.seed_instance(seed)
        self.authors = [f"{fakes[own].first_name()} {fakes[own].last_name()}" for own in LOCALES * 400]
        self.places = [fakes[own].city() for own in PLACE_LOCALES * 150]

    def title(self, chance: random.Random) -> str:
        return chance.choice(TITLE_PATTERNS).format(
            adjective=chance.choice(ADJECTIVES),
            noun=chance.choice(NOUNS),
            noun2=chance.choice(NOUNS),
            place=chance.choice(self.places),
        )
