"""The rules for the five fields of a book: values, and what the library says of each (specification, Section 2).

Every door reads this table: the API with Django and without it, bulk requests, imports, the admin,
instances, the OpenAPI documents and the compiled decoders.
"""

import json
from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple

from tests.support.books import MAX_LENGTHS

MIN_YEAR, MAX_YEAR = -(2**31), 2**31 - 1


class FieldError(NamedTuple):
    """The type of a problem in version 1, and its message in every version."""

    type: str
    message: str


NOT_TEXT = FieldError("string_type", "Input should be a valid string.")
BLANK = FieldError("blank", "This field may not be blank.")
NUL = FieldError("value_error", "Null characters are not allowed.")
SURROGATE = FieldError("string_unicode", "Surrogate characters are not allowed.")
NOT_INTEGER = FieldError("int_type", "Input should be a valid integer.")
FRACTION = FieldError("int_from_float", "Input should be a valid integer, got a number with a fractional part.")
TOO_LOW = FieldError("greater_than_equal", f"Ensure this value is greater than or equal to {MIN_YEAR}.")
TOO_HIGH = FieldError("less_than_equal", f"Ensure this value is less than or equal to {MAX_YEAR}.")
TOO_LONG = {
    name: FieldError("string_too_long", f"Ensure this field has no more than {length} characters.")
    for name, length in MAX_LENGTHS.items()
}


class Rule(NamedTuple):
    """A value of a field as JSON, and its problem. A blank text is one for all but version 1."""

    member: str
    literal: str
    problem: FieldError | None = None

    @property
    def title(self) -> str:
        return f"{self.member} {self.literal[:50]} ({len(self.literal)})"

    @property
    def value(self) -> Any:
        """The value as it is stored: a year is an integer."""
        value = json.loads(self.literal)
        return int(value) if self.member == "year" and not self.problem else value

    @property
    def clean_value(self) -> Any:
        """The value where white space is cleaned: in version 2, the admin and imports."""
        return CLEAN_TEXTS.get(self.value, self.value)

    @property
    def lenient_problem(self) -> FieldError | None:
        return None if self.problem == BLANK else self.problem


NO_TEXTS = ["null", "123", "1.5", "true", '["a"]', "{}"]
BLANKS = ["", " ", " \t\r\n\v\f\u00a0\u2003"]
# Version 1 stores them exactly as they are sent.
TEXTS = [
    "  around \n", "\ufeffa  a", "e\u0301", "\u00e9", "\u0001\u001f\u007f\u0085a", "\ufffe\uffff", "👩‍👧 🇩🇪",
    "<b>&amp;'\"\\/%_", "'; DROP TABLE books_book; --", "null", "1984",
]  # fmt: skip
CLEAN_TEXTS = {"  around \n": "around", "\ufeffa  a": "a a", "\u0001\u001f\u007f\u0085a": "\x01 \x7f a"}
UNSTORABLE_TEXTS = {"a\0b": NUL, "a\udfffb": SURROGATE, "\udc00\ud800": SURROGATE}
YEARS = {
    "1984": None, "1984.0": None, "1e3": None, "1.984E+3": None, "0": None, "-0": None, "-0.0": None, "-800": None,
    "2147483647": None, "2147483647.0": None, "-2147483648": None,
    "null": NOT_INTEGER, '"1984"': NOT_INTEGER, '""': NOT_INTEGER, "true": NOT_INTEGER, "false": NOT_INTEGER,
    "[1984]": NOT_INTEGER, "{}": NOT_INTEGER,
    "19.5": FRACTION, "1e-9": FRACTION,
    "2147483648": TOO_HIGH, "2147483648.0": TOO_HIGH, "9223372036854775808": TOO_HIGH, "1e300": TOO_HIGH,
    "1" + "0" * 30: TOO_HIGH, "9" * 5000: TOO_HIGH,
    "-2147483649": TOO_LOW, "-1" + "0" * 30: TOO_LOW, "-" + "9" * 5000: TOO_LOW,
}  # fmt: skip


def build_rules() -> Iterator[Rule]:
    """Every value for the title. The fields of the other texts differ from it in their lengths."""
    for name, length in MAX_LENGTHS.items():
        is_title = name == "title"
        yield from (Rule(name, literal, NOT_TEXT) for literal in (NO_TEXTS if is_title else ("null", "123")))
        yield from (Rule(name, json.dumps(text), BLANK) for text in (BLANKS if is_title else BLANKS[1:2]))
        yield from (Rule(name, json.dumps(text)) for text in (TEXTS if is_title else TEXTS[:1]))
        yield Rule(name, json.dumps("𐐨" * length))
        yield from (Rule(name, json.dumps(character * (length + 1)), TOO_LONG[name]) for character in ("a", "\u0301"))
        yield from (Rule(name, json.dumps(text), problem) for text, problem in UNSTORABLE_TEXTS.items())
    yield from (Rule("year", literal, problem) for literal, problem in YEARS.items())


RULES = list(build_rules())
# Those of which Python reads the value, too: it refuses integers of more than 4,300 digits.
VALUES = [rule for rule in RULES if len(rule.literal) < 4300 or rule.member != "year"]
# Of texts that forms and cells have: the year, or None if it is refused.
YEAR_TEXTS = {
    "1984": 1984, " 1984 ": 1984, "-800": -800, "0": 0, "2147483647": MAX_YEAR, "-2147483648": MIN_YEAR,
    "MCM": None, "19.5": None, "1e3": None, "2147483648": None, "-2147483649": None, "9" * 5000: None,
}  # fmt: skip


def list_differences(
    rules: Iterable[Rule], judge: Callable[[Rule], object], get_expected: Callable[[Rule], object]
) -> list[str]:
    """Returns each rule of which a door says something else, and what."""
    verdicts = ((rule, judge(rule), get_expected(rule)) for rule in rules)
    return [f"{rule.title}: {verdict}, not {expected}" for rule, verdict, expected in verdicts if verdict != expected]
