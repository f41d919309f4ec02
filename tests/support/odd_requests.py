"""Plain requests of which each has another odd part, by the name of that part."""

import json

from tests.support.credentials import UNUSUAL_NAMES
from tests.support.field_rules import RULES
from tests.support.request_strategies import (
    BODY_MUTATIONS,
    IDEMPOTENCY_KEYS,
    LAST_ETAG,
    MAX_BODY_BYTES,
    ODD_BODIES,
    ODD_CONTENT_TYPES,
    ODD_HEADERS,
    ODD_HOSTS,
    ODD_IDS,
    ODD_LENGTHS,
    ODD_PATHS,
    ODD_TAG_LISTS,
    ODD_VALUES,
    OTHER_SPELLINGS,
    YEAR_LITERALS,
    write_object,
)
from tests.support.requests import Headers, Request
from tests.support.small_library import NEW_BOOK, VERSION_2

BOOK = Request("GET", "/books/1", VERSION_2)
CHANGE = BOOK._replace(method="PUT", body=NEW_BOOK)
CREATION = Request("POST", "/books", VERSION_2, body=NEW_BOOK)
VALID_FIELDS = [(name, json.dumps(value)) for name, value in json.loads(NEW_BOOK).items()]
ODD_CHANGE_HEADERS: list[Headers] = [
    *ODD_HEADERS,
    *ODD_LENGTHS,
    *({"Host": host} for host in ODD_HOSTS),
    *({"Content-Type": content_type} for content_type in ODD_CONTENT_TYPES),
    *({name: tags} for name in ("If-Match", "If-None-Match") for tags in [LAST_ETAG, *ODD_TAG_LISTS]),
]
ODD_REQUESTS = {
    "credentials": [request._replace(credential=name) for name in UNUSUAL_NAMES for request in (BOOK, CHANGE)],
    "headers": [CHANGE._replace(headers=headers) for headers in ODD_CHANGE_HEADERS],
    "bodies": [
        CHANGE._replace(body=body)
        for body in [
            *ODD_BODIES,
            *(mutate(NEW_BOOK) for mutate in BODY_MUTATIONS),
            *(NEW_BOOK.ljust(length) for length in (MAX_BODY_BYTES, MAX_BODY_BYTES + 1)),
        ]
    ],
    "members": [
        CHANGE._replace(body=write_object([*VALID_FIELDS, field]).encode())
        for field in [
            *(("titel", "1"), ("title", '"Emma"'), ("id", "1")),
            # Those of the other texts are the same as those of the isbn.
            *((rule.member, rule.literal) for rule in RULES if rule.member in ("isbn", "year")),
            *(("year", year) for year in YEAR_LITERALS),
        ]
    ],
    "idempotency keys": [
        CREATION._replace(headers={"Idempotency-Key": key}) for key in [*IDEMPOTENCY_KEYS, *IDEMPOTENCY_KEYS]
    ],
    "paths": [BOOK._replace(path=path) for path in [*ODD_PATHS, *map("/books/{}".format, ODD_IDS)]],
    "versions": [request._replace(spelling=spelling) for spelling in OTHER_SPELLINGS for request in (BOOK, CHANGE)],
    "queries": [BOOK._replace(path="/books", query=f"author={value}") for value in ODD_VALUES],
}
