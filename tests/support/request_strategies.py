"""Hypothesis strategies for requests, valid and invalid, to a library that holds BOOKS."""

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any
from urllib.parse import quote, quote_plus

from hypothesis import settings
from hypothesis import strategies as st

from books.api.pagination import BOOK_CURSOR, SORT_ORDERS
from tests.support.books import MAX_LENGTHS
from tests.support.credentials import PLAIN_NAMES, UNUSUAL_NAMES
from tests.support.requests import BOOKS, STORED_ISBNS, Request, VersionSpelling
from tests.support.strategies import hypothesis_settings

# With the number of examples of the chosen Hypothesis profile.
comparison_settings = settings(hypothesis_settings, max_examples=settings().max_examples)
# A session is many requests, so the suite tries fewer.
session_settings = settings(
    comparison_settings, max_examples=10 if settings.get_current_profile_name() == "suite" else settings().max_examples
)


def choose_rarely(
    usual: st.SearchStrategy[Any], other: st.SearchStrategy[Any], one_of: int = 8
) -> st.SearchStrategy[Any]:
    """Chooses the other strategy once in `one_of` times.

    A request with many errors is refused for the first one, so most parts of a request must be valid.
    """
    return st.integers(1, one_of).flatmap(lambda number: other if number == one_of else usual)


def choose_evenly(*strategies: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    """Chooses each strategy as often as it is passed; `st.one_of` rarely chooses those with many branches."""
    return st.sampled_from(strategies).flatmap(lambda strategy: strategy)


def choose_stored(name: str) -> st.SearchStrategy[Any]:
    """Chooses a value that a book of BOOKS has in this field."""
    return st.sampled_from([book[name] for book in BOOKS])


USUAL_SPELLINGS = [
    VersionSpelling(),
    VersionSpelling("/api/v1"),
    VersionSpelling("/api/v2"),
    VersionSpelling("/api/v2"),
]
OTHER_SPELLINGS = [
    *(VersionSpelling(query=query) for query in ("version=1", "version=2", "version=3", "version=", "vers%69on=2")),
    *(VersionSpelling(accept=f"application/vnd.library{version}+json") for version in ("", ".v1", ".v2", ".v9")),
    *(VersionSpelling(accept=accept) for accept in ("text/html", "application/json", "*/*", "", "image/png;q=0")),
    *(VersionSpelling("/api/v2", accept=accept) for accept in ("application/json", "*/*", "application/json, */*")),
    VersionSpelling(accept="application/vnd.library.v1+json;q=0.5, application/vnd.library.v2+json"),
    VersionSpelling("/api/v1", accept="application/vnd.library.v2+json"),
    VersionSpelling("/api/v2", "version=1"),
    VersionSpelling("/api/v2", "version=2"),
    VersionSpelling("/api/v3"),
]
PROTECTION_MODES = ["protected", "protect-writes"]
spellings = choose_rarely(st.sampled_from(USUAL_SPELLINGS), st.sampled_from(OTHER_SPELLINGS))
latest_spellings = choose_rarely(st.just(VersionSpelling("/api/v2")), spellings)
credentials = choose_rarely(st.sampled_from(["none", *PLAIN_NAMES]), st.sampled_from(UNUSUAL_NAMES))

ODD_TEXTS = [
    "", " ", "\t\n", "\u00a0\u2003", "\u200b", "\x1c\x85", "\ufeff", "\0", "a\0b", "\ud800", "\udc00\ud800", "\x01",
    "e", "au", "aus", "AUSTEN", "jane  austen", " Jane", "é", "e\u0301", "É", "ß", "ẞ", "SS", "İ", "ſ", "fi", "ﬁ", "📖",
    "𐐨", "\uffff", "\u2028", "%", "%%", "_", "\\", "100%", "_\\", "a%b", "%s", "{}", '"', "'", "$1", "null", "1984",
    *STORED_ISBNS, "9780141439518", "ISBN 0-14-143951-3", "urn:isbn:9780141439518", "\u200e978-0-306-40615-7",
    '{"id":1}', '","id":1,"title":"', '"}},"previous":{"',
]  # fmt: skip
LONG_TEXTS = [character * (length + over) for length in MAX_LENGTHS.values() for character in "a𐐨 " for over in (0, 1)]
# A filter with one of these texts finds a book of BOOKS.
MATCHING_TEXTS = [
    "é", "É", "e\u0301", "ß", "SS", "fi", "ﬁ", "aus", "AUSTEN", "e", "%", "100%", "_\\", "Über", "📖", "Novel",
]  # fmt: skip
short_texts = st.text(st.characters(exclude_categories=()), max_size=8)
texts = st.sampled_from(ODD_TEXTS) | short_texts | st.sampled_from(LONG_TEXTS)
usual_texts = st.text(st.characters(exclude_categories=("Cs", "Cc")), min_size=1, max_size=8).map("Emma{}".format)
field_texts = choose_rarely(usual_texts, texts)

FIELDS = "id title author year isbn isbn13 genre available created_at updated_at version".split()
ORDERS = [f"{sign}{name}" for name in SORT_ORDERS for sign in ("", "-")]
cursors = st.tuples(
    st.sampled_from(ORDERS),
    st.booleans(),
    st.sampled_from(["", "austen", "2026-01-31T09:30:00.000000", "\0"]) | st.integers(-(2**65), 2**65),
    st.integers(-2, 5) | st.integers(-(2**65), 2**65),
)
NUMBER_PARAMETERS = ["", "0", "1", "2", "01", "+1", " 1", "x", "1.0", "٣", "9" * 9, "9" * 20]
YEAR_PARAMETERS = ["1813", "-800", "0", "", "x", "2147483647", "2147483648", "-" + "9" * 30, "1e3", "1813.0", " 1813"]
number_parameters = st.integers(-1, 502).map(str) | st.sampled_from(NUMBER_PARAMETERS)
year_parameters = st.sampled_from(YEAR_PARAMETERS)
flag_parameters = st.sampled_from(["true", "false", "True", "1", "", "null"])
parameters: dict[str, st.SearchStrategy[str]] = {
    **dict.fromkeys(["author", "genre", "title", "q", "isbn"], choose_evenly(texts, st.sampled_from(MATCHING_TEXTS))),
    "available": flag_parameters,
    "year_min": year_parameters,
    "year_max": year_parameters,
    "sort": st.sampled_from([*ORDERS, "", "--id", "isbn"]),
    "limit": number_parameters,
    "cursor": cursors.map(BOOK_CURSOR.encode) | texts,
    "count": flag_parameters,
    "fields": st.lists(st.sampled_from(FIELDS), min_size=1, max_size=4).map(",".join) | texts,
}
other_parameters = {
    "skip": number_parameters,
    "version": st.sampled_from(["1", "2", "3", ""]),
    "titel": texts,
    "dry_run": flag_parameters,
    "": texts,
}


def escape_minimally(text: str) -> str:
    """Escapes only what a server refuses unescaped."""
    raw = text.encode(errors="surrogatepass").decode("latin-1")
    return "".join(character if character > " " else quote(character) for character in raw)


def escape_fully(text: str) -> str:
    return quote(text, safe="", errors="surrogatepass")


def escape_form(text: str) -> str:
    return quote_plus(text, errors="surrogatepass")


ESCAPES: list[Callable[[str], str]] = [escape_fully, escape_form, escape_minimally]
ODD_VALUES = ["%", "%zz", "%ff", "+", "%2B", "%C3", "a%", "%00", "%2500", "a=b", "a;b", "&", "=", "a#b", "%D9%A3"]


def choose_pair(names: Mapping[str, st.SearchStrategy[str]]) -> st.SearchStrategy[str]:
    """Chooses one of these names with a value of its own strategy, rarely with an odd one."""

    def choose_value(name: str) -> st.SearchStrategy[str]:
        usual = st.builds(lambda escape, text: escape(text), st.sampled_from(ESCAPES), names[name])
        return choose_rarely(usual, st.sampled_from(ODD_VALUES)).map(f"{name}={{}}".format)

    return st.sampled_from(sorted(names)).flatmap(choose_value)


ODD_QUERIES = ["&", "author", "=", "skip=1&&limit=1", "limit=1&limit=2", "author=a&author=b", "?"]
pair_lists = st.lists(choose_rarely(choose_pair(parameters), choose_pair(other_parameters)), max_size=3)
queries = choose_rarely(pair_lists.map("&".join), st.sampled_from(ODD_QUERIES), 12)
text_pairs = choose_pair({name: parameters[name] for name in ("author", "genre")})
text_queries = st.lists(text_pairs, min_size=1, max_size=2).map("&".join)
page_queries = st.builds("skip={}&limit={}".format, st.integers(0, 4), st.integers(1, 3))

ODD_LITERALS = [
    "null", "true", "false", "1", "1.5", "[]", "{}", '["a"]', '{"a": 1}', '""', "NaN", "Infinity", "-Infinity", "nul",
    "'a'", "", r'"\ud800"', r'"\udc00"', r'"\ud801\udc28"', r'"a\u0000"', r'"\\u0000"', r'"\u0041"', r'"\x41"',
    '"a\nb"', '"\t"', '"\x7f"', r'"\/"',
]  # fmt: skip
YEAR_LITERALS = [
    "1984", "1984.0", "1e3", "1.984E+3", "1E2", "1000e-3", "1e-2", "0", "-0", "-0.0", "19.5", "01", "+1", "1.", ".5",
    "0x1", "1_000", "2147483647", "2147483647.0", "2147483648", "2147483648.0", "-2147483648", "-2147483649",
    "9007199254740993.0", "9223372036854775807", "9223372036854775808", "18446744073709551616", "1" + "0" * 30,
    "9" * 5000, "1e300", "1e400", "-1e400", '"1984"',
]  # fmt: skip
field_names = st.sampled_from(
    [
        *"title author year isbn genre available id version isbn13 created_at updated_at titel".split(),
        "",
        "\0",
        "\ud800",
    ]
)
text_literals = texts.map(json.dumps) | texts.map(partial(json.dumps, ensure_ascii=False))


def choose_field(name: str) -> st.SearchStrategy[tuple[str, str]]:
    """Returns the name with a literal, often of its type."""
    typical = st.sampled_from(YEAR_LITERALS) if name == "year" else text_literals
    return st.tuples(st.just(name), st.one_of(typical, st.sampled_from(ODD_LITERALS)))


valid_fields = {
    "title": choose_rarely(field_texts, choose_stored("title")).map(json.dumps),
    "author": choose_rarely(field_texts, choose_stored("author")).map(json.dumps),
    "year": st.sampled_from(["1984", "1813", "-800"]) | st.sampled_from(YEAR_LITERALS[:4]),
    "isbn": choose_rarely(field_texts, choose_stored("isbn")).map(json.dumps),
    "genre": choose_rarely(field_texts, choose_stored("genre")).map(json.dumps),
}
# As answers have them; a client may send them back.
read_fields = {
    "id": st.sampled_from(["1", "2", "null", "9" * 30]),
    "isbn13": st.sampled_from(["null", '"9780141439518"']),
    "available": st.sampled_from(["true", "false"]),
    "created_at": st.sampled_from(['"2026-01-31T09:30:00.000000"', '"é"', '"\\ud800"', '"\\u0000"']),
    "version": st.sampled_from(["1", "1e400", "{}"]),
}
complete_fields = st.fixed_dictionaries(valid_fields, optional=read_fields)
partial_fields = st.fixed_dictionaries({}, optional={**valid_fields, "available": st.sampled_from(["true", "false"])})


def write_object(fields: Iterable[tuple[str, str]]) -> str:
    """Writes a JSON object. A name may occur twice."""
    return "{" + ", ".join(f"{json.dumps(name)}: {literal}" for name, literal in fields) + "}"


def build_objects(fields: st.SearchStrategy[dict[str, str]]) -> st.SearchStrategy[str]:
    """Writes the fields as an object. Some objects get one or two other fields, which replace those of the same name
    or come after them, so that the name occurs twice.
    """
    more = st.lists(field_names.flatmap(choose_field), min_size=1, max_size=2)
    replaced = st.builds(lambda valid, other: {**valid, **dict(other)}.items(), fields, more)
    appended = st.builds(lambda valid, other: [*valid.items(), *other], fields, more)
    return choose_rarely(fields.map(dict.items), replaced | appended, 3).map(write_object)


MAX_BODY_BYTES = 2**20
BODY_MUTATIONS: list[Callable[[bytes], bytes]] = [
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
    lambda body: body[:-1] + b', "id": ' + b"[" * 2000 + b"]" * 2000 + b"}",
]
ODD_BODIES = [
    b"", b" ", b"null", b"[]", b'"title"', b"1", b"{}", b"{", b"\xff", b"NaN", b"\xef\xbb\xbf{}", b"[" * 5000,
    b" " * (MAX_BODY_BYTES + 1),
]  # fmt: skip


def encode_bodies(objects: st.SearchStrategy[str]) -> st.SearchStrategy[bytes]:
    """Encodes the objects; damages some of them, and replaces some with ODD_BODIES."""
    usual = objects.map(lambda text: text.encode(errors="surrogatepass"))
    damaged = st.builds(lambda body, mutate: mutate(body), usual, st.sampled_from(BODY_MUTATIONS))
    return choose_rarely(usual, damaged | st.sampled_from(ODD_BODIES), 6)


creation_bodies = choose_rarely(
    encode_bodies(build_objects(complete_fields)), encode_bodies(build_objects(partial_fields))
)
bodies = encode_bodies(build_objects(complete_fields) | build_objects(partial_fields))

# Stands for the latest ETag of the session: that of the book's state, or of an earlier one.
LAST_ETAG = '"last"'
TAGS = [LAST_ETAG, *(f'"v{version}-{pk}-{state}"' for pk in (1, 2) for version in (1, 2) for state in (1, 2))]
ODD_TAG_LISTS = ["*", "", "x", '"', '"x"', "v1-1-1", "*, *", '"v1-1-1', ",", 'w/"v1-1-1"', '"x" "v1-1-1"', "é"]
entity_tags = st.sampled_from(TAGS)
tag_lists = choose_evenly(
    st.just(LAST_ETAG),
    entity_tags,
    entity_tags.map("W/{}".format),
    st.lists(entity_tags | entity_tags.map("W/{}".format), min_size=2, max_size=3).map(", ".join),
    st.sampled_from(ODD_TAG_LISTS),
)
conditions = st.dictionaries(st.sampled_from(["If-Match", "If-None-Match"]), tag_lists, min_size=1)
ODD_HEADERS: list[dict[str, str | None]] = [
    {"X-Strange": "1"}, {"Origin": "https://x.example"}, {"Origin": "http://127.0.0.1"}, {"Origin": "null"},
    {"X-Forwarded-Proto": "https"}, {"X-Forwarded-Proto": "x"}, {"X-Forwarded-Host": "x"}, {"X-Forwarded-For": "::1"},
    {"Accept-Language": "de"}, {"Accept-Encoding": "gzip"}, {"Range": "bytes=0-1"}, {"Expect": "100-continue"},
    {"Cookie": "sessionid=x"}, {"Cookie": ""}, {"X-HTTP-Method-Override": "DELETE"}, {"Content-Encoding": "gzip"},
    {"If-Modified-Since": "Sat, 31 Jan 2026 09:30:00 GMT"}, {"If-Unmodified-Since": "x"}, {"If-Range": '"x"'},
    {"X-Request-ID": "another-request"}, {"Connection": "close"}, {"User-Agent": "é"}, {"Upgrade": "h2c"},
]  # fmt: skip
ODD_HOSTS = [
    *("evil.example", "localhost:8000", "LOCALHOST", "127.0.0.1.", "127.0.0.1:x", "[::1]", "a_b", "x" * 300, "", None),
]
ODD_LENGTHS: list[dict[str, str | None]] = [
    {"Content-Length": "9999"}, {"Content-Length": "9" * 19}, {"Content-Length": None},
    {"Content-Length": None, "Transfer-Encoding": "chunked"},
]  # fmt: skip
ODD_CONTENT_TYPES = [
    "application/merge-patch+json", "application/json; charset=utf-8", "application/json;charset=latin-1",
    "APPLICATION/JSON", "application/json, application/json", " application/json", "application/jsonx", "text/plain",
    "multipart/form-data; boundary=x", "multipart/form-data", "application/x-www-form-urlencoded", "json", ";", "", "é",
]  # fmt: skip
HeaderStrategy = st.SearchStrategy[dict[str, str | None]]


def choose_header(name: str, values: Sequence[str | None]) -> HeaderStrategy:
    return st.sampled_from(values).map(lambda value: {name: value})


def merge_headers(*headers: HeaderStrategy) -> HeaderStrategy:
    return st.tuples(*headers).map(lambda parts: {name: value for part in parts for name, value in part.items()})


no_headers: HeaderStrategy = st.just({})
odd_headers = choose_rarely(no_headers, st.sampled_from(ODD_HEADERS) | choose_header("Host", ODD_HOSTS), 12)
common_headers = merge_headers(choose_rarely(no_headers, conditions, 4), odd_headers)
content_types = choose_rarely(
    choose_header("Content-Type", ["application/json"]) | no_headers, choose_header("Content-Type", ODD_CONTENT_TYPES)
)
body_headers = merge_headers(common_headers, content_types, choose_rarely(no_headers, st.sampled_from(ODD_LENGTHS), 16))
IDEMPOTENCY_KEYS = ["one", "two", "", "ä", "x" * 256]
idempotency_keys = choose_rarely(no_headers, choose_header("Idempotency-Key", IDEMPOTENCY_KEYS))
empty_bodies = st.just(b"")

# The first books that a session adds have the ids 101 and 102.
USUAL_IDS = ["1", "1", "1", "2", "2", "3", "3", "101"]
ODD_IDS = [
    "0", "4", "9" * 18, "9" * 19, str(2**63 - 1), str(2**63), "9" * 5000, "-0", "-1", "+1", "01", "x", "", "1/", "1//",
    "1.0", "1e0", "0x1", "1_0", " 1", "1 ", "1\n", "1\0", "1;x", "1/2", "%31", "１", "٣", "é", "bulk", "..",
]  # fmt: skip
ODD_PATHS = ["", "/", "/book", "/BOOKS", "//books", "/books//", "/books\n", "/books;x", "/v2/books", "/webhooks", "/é"]
list_paths = st.just("/books")
book_paths = choose_rarely(st.sampled_from(USUAL_IDS), st.sampled_from(ODD_IDS), 10).map("/books/{}".format)
read_queries = choose_rarely(st.just(""), choose_pair({"fields": parameters["fields"]}) | queries)
write_queries = choose_rarely(st.just(""), queries, 12)


def build_requests(
    methods: list[str],
    paths: st.SearchStrategy[str],
    query: st.SearchStrategy[str],
    headers: HeaderStrategy,
    body: st.SearchStrategy[bytes] = empty_bodies,
    spelling: st.SearchStrategy[VersionSpelling] = spellings,
) -> st.SearchStrategy[Request]:
    return st.builds(Request, st.sampled_from(methods), paths, spelling, query, headers, credentials, body)


odd_literals = st.sampled_from([*ODD_LITERALS, "1e999", "[1e999]", '{"operations": []}', "[[[{}]]]", "1" * 5000])
operation_ids = choose_rarely(st.sampled_from(["1", "2", "3.0"]), odd_literals)
operation_books = {
    "create": build_objects(complete_fields),
    "update": build_objects(partial_fields),
    "delete": st.just(""),
}


def write_operation(op: str, pk: str, version: str, book: str) -> str:
    """Writes an operation of a bulk request. An empty book is absent."""
    ids = {} if op == "create" else {"id": pk, **({"version": version} if version != "1" else {})}
    return write_object({"op": json.dumps(op), **ids, **({"book": book} if book else {})}.items())


bulk_operations = st.sampled_from(sorted(operation_books)).flatmap(
    lambda op: st.builds(partial(write_operation, op), operation_ids, operation_ids, operation_books[op])
)
bulk_bodies = encode_bodies(
    st.lists(bulk_operations, min_size=1, max_size=3).map(", ".join).map('{{"operations": [{}]}}'.format)
)

list_requests = build_requests(
    ["GET"],
    choose_rarely(list_paths, st.just("/books/")),
    choose_evenly(queries, text_queries, text_queries, page_queries),
    common_headers,
)
read_requests = build_requests(["GET"], book_paths, read_queries, common_headers)
create_requests = build_requests(
    ["POST"], list_paths, write_queries, merge_headers(body_headers, idempotency_keys), creation_bodies
)
replace_requests = build_requests(["PUT"], book_paths, write_queries, body_headers, bodies)
merge_requests = build_requests(["PATCH"], book_paths, write_queries, body_headers, bodies, latest_spellings)
delete_requests = build_requests(["DELETE"], book_paths, write_queries, common_headers)
bulk_requests = build_requests(
    ["POST"],
    st.just("/books/bulk"),
    write_queries,
    merge_headers(body_headers, idempotency_keys),
    bulk_bodies,
    latest_spellings,
)
undo_requests = build_requests(
    ["POST"],
    st.tuples(book_paths, st.sampled_from(["restore", "revert"])).map("/".join),
    write_queries,
    body_headers,
    choose_rarely(
        st.just(b'{"version": 1}'), st.sampled_from([*ODD_BODIES, b'{"version": 9}', b'{"version": "1"}']), 3
    ),
    latest_spellings,
)
# Requests whose method, path or body does not fit the rest.
odd_requests = build_requests(
    ["GET", "GET", "HEAD", "OPTIONS", "TRACE", "POST", "PUT", "PATCH", "DELETE", "get", "Put"],
    list_paths | book_paths | st.sampled_from(ODD_PATHS),
    read_queries,
    body_headers,
    empty_bodies | bodies,
)
requests = choose_evenly(
    list_requests,
    list_requests,
    read_requests,
    create_requests,
    create_requests,
    replace_requests,
    replace_requests,
    merge_requests,
    choose_evenly(delete_requests, delete_requests, bulk_requests, undo_requests),
    choose_rarely(replace_requests, odd_requests, 2),
)
