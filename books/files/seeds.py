"""Example books: real classics first, then generated ones. The same seed gives the same books."""

import csv
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from stdnum import ean

CLASSICS_FILE = Path(__file__).parent / "data" / "classics.csv"
# No agency assigns ISBNs that begin with 979-9. Ours begin with it, then have one digit for the seed and seven for the
# book. The digit 9 is reserved for the classics.
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
    """Yields the first `count` books of a seed, as values for `books.writing.changes`."""
    number = 0
    for number, book in enumerate(read_classics(), 1):
        if number > count:
            return
        yield book
    yield from generate_books(count - number, seed)


def read_classics() -> Iterator[dict[str, Any]]:
    with CLASSICS_FILE.open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            yield {**row, "year": int(row["year"])}


def generate_books(count: int, seed: int) -> Iterator[dict[str, Any]]:
    generator = random.Random(seed)
    names = NameGenerator(seed)
    for number in range(count):
        yield {
            "title": names.choose_title(generator),
            "author": generator.choice(names.authors),
            "year": int(generator.triangular(1850, 2025, 2015)),
            "isbn": build_isbn(seed, number),
            "genre": generator.choice(GENRES),
        }


def build_isbn(seed: int, number: int) -> str:
    """Returns an ISBN-13 in our own range, with its check digit (ISO 2108)."""
    digits = f"9799{seed}{number:07d}"
    return digits + ean.calc_check_digit(digits)


class NameGenerator:
    """Names of authors and places, generated once because Faker is too slow to call for each of a million books."""

    def __init__(self, seed: int) -> None:
        # The container image is without it.
        from faker import Faker

        faker = Faker(LOCALES)
        faker.seed_instance(seed)
        self.authors = [f"{faker[locale].first_name()} {faker[locale].last_name()}" for locale in LOCALES * 400]
        self.places = [faker[locale].city() for locale in PLACE_LOCALES * 150]

    def choose_title(self, generator: random.Random) -> str:
        return generator.choice(TITLE_PATTERNS).format(
            adjective=generator.choice(ADJECTIVES),
            noun=generator.choice(NOUNS),
            noun2=generator.choice(NOUNS),
            place=generator.choice(self.places),
        )
