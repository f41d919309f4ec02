"""Requests as Hypothesis makes them up, as they should be and otherwise, of a library that has BOOKS."""

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from functools import partial
from typing import Any, NamedTuple
from urllib.parse import quote, quote_plus

from hypothesis import settings
from hypothesis import strategies as st

from books.api.pagination import SORT_ORDERS, BookCursor
from tests.support.books import LENGTHS
from tests.support.strategies import thorough

# As many examples as Hypothesis's profile says.
equal = settings(thorough, max_examples=settings().max_examples)

ADDED = datetime(2026, 1, 31, 9, 30, 0, 250, UTC)
BOOKS: list[dict[str, Any]] = [
    {
        "title": "Pride and Prejudice",
        "author": "Jane Austen",
        "year": 1813,
        "isbn": "978-0-14-143951-8",
        "genre": "Novel",
        "created_at": ADDED,
    },
    {
        "title": "Über 100% _\\ 📖",
        "author": "E\u0301mile ẞ",
        "year": -800,
        "isbn": "no isbn",
        "genre": "% ÉSS",
        "created_at": ADDED.replace(microsecond=0),
    },
    {
        "title": "ﬁ",
        "author": "ausTEN",
        "year": 2**31 - 1,
        "isbn": "0306406152",
        "genre": "",
        "available": False,
        "created_at": ADDED,
    },
]
IN_USE = [book["isbn"] for book in BOOKS]


class Spelling(NamedTuple):
    """How a request says the version that it means."""

    home: str = "/api"
    query: str = ""
    accept: str | None = None


class Request(NamedTuple):
    """Its path is what follows the version; its query is written as it is sent, in Latin-1 as WSGI has it.

    The credential is one of CREDENTIALS.
    """

    method: str
    path: str
    spelling: Spelling = Spelling()
    query: str = ""
    headers: Mapping[str, str] = {}
    credential: str = "none"
    body: bytes = b""


def seldom(usual: st.SearchStrategy[Any], other: st.SearchStrategy[Any], one_of: int = 8) -> st.SearchStrategy[Any]:
    """The other, one time of so many: requests that are wrong in every way would all be refused alike."""
    return st.integers(1, one_of).flatmap(lambda number: other if number == one_of else usual)


def any_of(*strategies: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    """Each as often as it is named; of `st.one_of` those are rare that have more to choose."""
    return st.sampled_from(strategies).flatmap(lambda strategy: strategy)


def of_books(name: str) -> st.SearchStrategy[Any]:
    return st.sampled_from([book[name] for book in BOOKS])


SPELLINGS = [Spelling(), Spelling("/api/v1"), Spelling("/api/v2"), Spelling("/api/v2")]
OTHER_SPELLINGS = [
    *(Spelling(query=query) for query in ("version=1", "version=2", "version=3", "version=", "vers%69on=2")),
    *(Spelling(accept=f"application/vnd.library{version}+json") for version in ("", ".v1", ".v2", ".v9")),
    *(Spelling(accept=accept) for accept in ("text/html", "application/json", "*/*", "")),
    Spelling("/api/v1", accept="application/vnd.library.v2+json"),
    Spelling("/api/v2", "version=1"),
    Spelling("/api/v2", "version=2"),
    Spelling("/api/v3"),
]
CREDENTIALS = ["none", "key", "token", "reader's token", "both", "no key", "no token", "no Bearer"]
PROTECTED = ["protected", "protect-writes"]
spellings = seldom(st.sampled_from(SPELLINGS), st.sampled_from(OTHER_SPELLINGS))
credentials = seldom(st.just("none"), st.sampled_from(CREDENTIALS))

ODD = [
    "", " ", "\t\n", "\u00a0\u2003", "\u200b", "\x1c\x85", "\ufeff", "\0", "a\0b", "\ud800", "\udc00\ud800", "\x01",
    "e", "au", "aus", "AUSTEN", "jane  austen", " Jane", "é", "e\u0301", "É", "ß", "ẞ", "SS", "İ", "ſ", "fi", "ﬁ", "📖",
    "𐐨", "\uffff", "\u2028", "%", "%%", "_", "\\", "100%", "_\\", "a%b", "%s", "{}", '"', "'", "$1", "null", "1984",
    *IN_USE, "9780141439518", "ISBN 0-14-143951-3", "urn:isbn:9780141439518", "\u200e978-0-306-40615-7",
    '{"id":1}', '","id":1,"title":"', '"}},"previous":{"',
]  # fmt: skip
LONG = [character * (length + over) for length in LENGTHS.values() for character in "a𐐨 " for over in (0, 1)]
# All of these are in BOOKS.
FOUND = ["é", "É", "e\u0301", "ß", "SS", "fi", "ﬁ", "aus", "AUSTEN", "e", "%", "100%", "_\\", "Über", "📖", "Novel"]
short = st.text(st.characters(exclude_categories=()), max_size=8)
texts = st.sampled_from(ODD) | short | st.sampled_from(LONG)
usual_texts = st.text(st.characters(exclude_categories=("Cs", "Cc")), min_size=1, max_size=8).map("Emma{}".format)
right_texts = seldom(usual_texts, texts)

MEMBERS = "id title author year isbn isbn13 genre available created_at updated_at version".split()
ORDERS = [f"{sign}{name}" for name in SORT_ORDERS for sign in ("", "-")]
cursors = st.builds(
    BookCursor,
    st.sampled_from(ORDERS),
    st.booleans(),
    st.sampled_from(["", "austen", "2026-01-31T09:30:00.000000", "\0"]) | st.integers(-(2**65), 2**65),
    st.integers(-2, 5) | st.integers(-(2**65), 2**65),
)
NUMBERS = ["", "0", "1", "2", "01", "+1", " 1", "x", "1.0", "٣", "9" * 9, "9" * 20]
YEARS_ASKED = ["1813", "-800", "0", "", "x", "2147483647", "2147483648", "-" + "9" * 30, "1e3", "1813.0", " 1813"]
numbers = st.integers(-1, 502).map(str) | st.sampled_from(NUMBERS)
years = st.sampled_from(YEARS_ASKED)
flags = st.sampled_from(["true", "false", "True", "1", "", "null"])
parameters: dict[str, st.SearchStrategy[str]] = {
    **dict.fromkeys(["author", "genre", "title", "q", "isbn"], any_of(texts, st.sampled_from(FOUND))),
    "available": flags,
    "year_min": years,
    "year_max": years,
    "sort": st.sampled_from([*ORDERS, "", "--id", "isbn"]),
    "limit": numbers,
    "cursor": cursors.map(BookCursor.encode) | texts,
    "count": flags,
    "fields": st.lists(st.sampled_from(MEMBERS), min_size=1, max_size=4).map(",".join) | texts,
}
others = {"skip": numbers, "version": st.sampled_from(["1", "2", "3", ""]), "titel": texts, "dry_run": flags, "": texts}


def bare(text: str) -> str:
    """As few escapes as a server takes."""
    raw = text.encode(errors="surrogatepass").decode("latin-1")
    return "".join(character if character > " " else quote(character) for character in raw)


def escaped(text: str) -> str:
    return quote(text, safe="", errors="surrogatepass")


def plus(text: str) -> str:
    return quote_plus(text, errors="surrogatepass")


ESCAPES: list[Callable[[str], str]] = [escaped, plus, bare]
WRITTEN = ["%", "%zz", "%ff", "+", "%2B", "%C3", "a%", "%00", "%2500", "a=b", "a;b", "&", "=", "a#b", "%D9%A3"]


def pairs(names: Mapping[str, st.SearchStrategy[str]]) -> st.SearchStrategy[str]:
    """One of these names, with a value that is its own or any."""

    def pair(name: str) -> st.SearchStrategy[str]:
        own = st.builds(lambda escape, text: escape(text), st.sampled_from(ESCAPES), names[name])
        return seldom(own, st.sampled_from(WRITTEN)).map(f"{name}={{}}".format)

    return st.sampled_from(sorted(names)).flatmap(pair)


QUERIES = ["&", "author", "=", "skip=1&&limit=1", "limit=1&limit=2", "author=a&author=b", "?"]
some_pairs = st.lists(seldom(pairs(parameters), pairs(others)), max_size=3)
queries = seldom(some_pairs.map("&".join), st.sampled_from(QUERIES), 12)
text_pairs = pairs({name: parameters[name] for name in ("author", "genre")})
texts_asked = st.lists(text_pairs, min_size=1, max_size=2).map("&".join)
parts = st.builds("skip={}&limit={}".format, st.integers(0, 4), st.integers(1, 3))

LITERALS = [
    "null", "true", "false", "1", "1.5", "[]", "{}", '["a"]', '{"a": 1}', '""', "NaN", "Infinity", "-Infinity", "nul",
    "'a'", "", r'"\ud800"', r'"\udc00"', r'"\ud801\udc28"', r'"a\u0000"', r'"\\u0000"', r'"\u0041"', r'"\x41"',
    '"a\nb"', '"\t"', '"\x7f"', r'"\/"',
]  # fmt: skip
YEARS = [
    "1984", "1984.0", "1e3", "1.984E+3", "1E2", "1000e-3", "1e-2", "0", "-0", "-0.0", "19.5", "01", "+1", "1.", ".5",
    "0x1", "1_000", "2147483647", "2147483647.0", "2147483648", "2147483648.0", "-2147483648", "-2147483649",
    "9007199254740993.0", "9223372036854775807", "9223372036854775808", "18446744073709551616", "1" + "0" * 30,
    "9" * 5000, "1e300", "1e400", "-1e400", '"1984"',
]  # fmt: skip
names = st.sampled_from(
    ["title", "author", "year", "isbn", "genre", "available", "id", "version", "isbn13", "titel", "", "\0", "\ud800"]
)
quoted = texts.map(json.dumps) | texts.map(partial(json.dumps, ensure_ascii=False))


def member(name: str) -> st.SearchStrategy[tuple[str, str]]:
    """A name with a literal that is often of its type."""
    typical = st.sampled_from(YEARS) if name == "year" else quoted
    return st.tuples(st.just(name), st.one_of(typical, st.sampled_from(LITERALS)))


right = {
    "title": seldom(right_texts, of_books("title")).map(json.dumps),
    "author": seldom(right_texts, of_books("author")).map(json.dumps),
    "year": st.sampled_from(["1984", "1813", "-800"]) | st.sampled_from(YEARS[:4]),
    "isbn": seldom(right_texts, of_books("isbn")).map(json.dumps),
    "genre": seldom(right_texts, of_books("genre")).map(json.dumps),
}
whole = st.fixed_dictionaries(right)
some = st.fixed_dictionaries({}, optional={**right, "available": st.sampled_from(["true", "false"])})


def written(members: Iterable[tuple[str, str]]) -> str:
    """An object of names with literals."""
    return "{" + ", ".join(f"{json.dumps(name)}: {literal}" for name, literal in members) + "}"


def objects(members: st.SearchStrategy[dict[str, str]]) -> st.SearchStrategy[str]:
    """Some have other members instead of these, and some besides: twice where they are there already."""
    more = st.lists(names.flatmap(member), min_size=1, max_size=2)
    instead = st.builds(lambda right, other: {**right, **dict(other)}.items(), members, more)
    besides = st.builds(lambda right, other: [*right.items(), *other], members, more)
    return seldom(members.map(dict.items), instead | besides, 2).map(written)


SPOILED: list[Callable[[bytes], bytes]] = [
    lambda body: b"\xef\xbb\xbf" + body,
    lambda body: body[:-1],
    lambda body: body + b"}",
    lambda body: b" \r\n\t" + body + b"\n",
    lambda body: b"\0" + body,
    lambda body: b"\f" + body,
    lambda body: b"[" + body + b"]",
    lambda body: body.replace(b'"title"', rb'"\u0074itle"'),
    lambda body: body.replace(b"Emma", b"Emma\xff"),
    lambda body: body.replace(b"Emma", b"Emma\xed\xa0\x80"),
    lambda body: body.decode(errors="replace").encode("utf-16"),
    lambda body: b'{"a": ' * 2000 + body + b"}" * 2000,
    lambda body: b"// a\n" + body,
]
NO_OBJECTS = [
    b"", b" ", b"null", b"[]", b'"title"', b"1", b"{}", b"{", b"\xff", b"NaN", b"\xef\xbb\xbf{}", b"[" * 5000,
    b" " * (2**20 + 1),
]  # fmt: skip


def sent(objects: st.SearchStrategy[str]) -> st.SearchStrategy[bytes]:
    bytes_ = objects.map(lambda text: text.encode(errors="surrogatepass"))
    spoiled = st.builds(lambda body, spoil: spoil(body), bytes_, st.sampled_from(SPOILED)) | st.sampled_from(NO_OBJECTS)
    return seldom(bytes_, spoiled, 6)


new_bodies = seldom(sent(objects(whole)), sent(objects(some)))
bodies = sent(objects(whole) | objects(some))

TAGS = [f'"v{version}-{pk}-{state}"' for pk in (1, 2) for version in (1, 2) for state in (1, 2)]
a_tag = st.sampled_from(TAGS)
tags = st.one_of(
    a_tag,
    a_tag.map("W/{}".format),
    st.lists(a_tag, max_size=3).map(", ".join),
    st.sampled_from(["*", "", "x", '"', '"x"', "v1-1-1"]),
)
conditions = st.dictionaries(st.sampled_from(["If-Match", "If-None-Match"]), tags, min_size=1)
HEADERS = [
    {"X-Strange": "1"}, {"Origin": "https://x.example"}, {"X-Forwarded-Proto": "https"}, {"Host": "evil.example"},
    {"Accept-Language": "de"}, {"Range": "bytes=0-1"}, {"Cookie": "sessionid=x"}, {"Content-Length": "9999"},
]  # fmt: skip
TYPES = [
    "application/merge-patch+json", "application/json; charset=utf-8", "application/json;charset=latin-1",
    "APPLICATION/JSON", "text/plain", "multipart/form-data; boundary=x", "application/x-www-form-urlencoded", "json",
    ";", "",
]  # fmt: skip


def header(name: str, values: Sequence[str]) -> st.SearchStrategy[dict[str, str]]:
    return st.sampled_from(values).map(lambda value: {name: value})


def together(*headers: st.SearchStrategy[dict[str, str]]) -> st.SearchStrategy[dict[str, str]]:
    return st.tuples(*headers).map(lambda found: {name: value for one in found for name, value in one.items()})


unusual = seldom(st.just({}), conditions | st.sampled_from(HEADERS))
typed = seldom(header("Content-Type", ["application/json"]) | st.just({}), header("Content-Type", TYPES))
keyed = seldom(st.just({}), header("Idempotency-Key", ["one", "two", "", "ä", "x" * 256]))
no_body = st.just(b"")

ODD_IDS = ["0", "4", "9" * 18, "9" * 19, "-1", "01", "x", "", "1/", "1.0", "１"]
all_books = st.just("/books")
a_book = seldom(st.sampled_from(["1", "2", "3"]), st.sampled_from(ODD_IDS)).map("/books/{}".format)
own = seldom(st.just(""), pairs({"fields": parameters["fields"]}) | queries)
astray = seldom(st.just(""), queries, 12)


def made(
    methods: list[str],
    paths: st.SearchStrategy[str],
    query: st.SearchStrategy[str],
    headers: st.SearchStrategy[dict[str, str]],
    body: st.SearchStrategy[bytes] = no_body,
) -> st.SearchStrategy[Request]:
    return st.builds(Request, st.sampled_from(methods), paths, spellings, query, headers, credentials, body)


lists = made(["GET"], seldom(all_books, st.just("/books/")), any_of(queries, texts_asked, texts_asked, parts), unusual)
ones = made(["GET"], a_book, own, unusual)
creations = made(["POST"], all_books, astray, together(unusual, typed, keyed), new_bodies)
changes = made(["PUT", "PUT", "PATCH"], a_book, astray, together(unusual, typed), bodies)
rest = made(["DELETE", "HEAD", "OPTIONS"], all_books | a_book, own, unusual)
requests = any_of(lists, lists, ones, creations, creations, changes, changes, seldom(changes, rest, 2))
