"""Converts MARC 21 records to books, and books to records (MARC 21, Bibliographic Data).

Fields that we write are exact: the leader says that they contain no ISBD punctuation.
"""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain
from typing import Any, NamedTuple

from django.utils.translation import gettext as _
from django.utils.translation import gettext_noop
from pymarc import Field, Indicators, Subfield
from pymarc import Record as MarcRecord

from books.book.fields import BOOK_FIELDS
from books.book.isbn import build_record_number, split_record_number
from books.book.texts import clean_white_space
from books.files.columns.qualifiers import ELECTRONIC, OF_SET, choose_qualified
from books.files.columns.texts import SORTING_MARKS, strip_stop
from books.files.formats.encodings import AMBIGUOUS, UNSAFE_BLANKS, escape_characters, unescape_characters
from books.files.formats.record_kinds import describe_no_book, describe_unknown_kind, is_other_medium
from books.files.formats.records import (
    MAX_SHOWN_NAME,
    SURE_YEAR,
    ExportedBook,
    Record,
    UnreadableFile,
    iter_texts,
    name_field,
    read_availability,
)

# The fields of a record by tag; those in another script (880) follow the field that they are linked to.
Fields = Mapping[str, Sequence[Field]]


class Source(NamedTuple):
    """A field that may have the value, and its subfields, each with the text that is put before it in a record without
    ISBD punctuation. `indicators` are the second indicators that count; if empty, all do. A field with the subfield
    `unless` does not count.
    """

    tag: str
    separators: Mapping[str, str]
    indicators: str = ""
    unless: str = ""


PERSON, CORPORATION = {"a": "", "b": " ", "c": ", "}, {"a": "", "b": ". ", "n": " ", "d": " ", "c": " "}
MEETING = {"a": "", "q": " ", "e": ". ", "n": " ", "d": " ", "c": " "}
NAMES = {"00": PERSON, "10": CORPORATION, "11": MEETING, "20": {"a": ""}}
# Fields that are not read from the first text of a source.
OWN_RULES = ("isbn", "year")
# The sources of each other field. The first that is not empty counts.
TEXT_SOURCES = {
    **{
        field.name: [Source(field.marc[0], {field.marc[2]: ""})] for field in BOOK_FIELDS if field.name not in OWN_RULES
    },
    "title": [Source("245", {**dict.fromkeys("npks", ". "), **dict.fromkeys("fg", ", "), "a": "", "b": ": ", "h": ""})],
    # An added entry with a title names the author of another work.
    "author": [Source(f"{group}{kind}", codes, unless="t") for group in (1, 7) for kind, codes in NAMES.items()],
    "genre": [Source("655", {"a": ""}), Source("650", {"v": ""}), Source("650", {"a": ""})],
}
DATE = {"c": " "}
# Field 264 names by its second indicator what happened: publication, also if it does not say; production, and the date
# of copyright; distribution and manufacture. Field 260 is the older form of the first.
PUBLICATIONS = [Source("264", DATE, " 1#"), Source("260", DATE)]
COPYRIGHTS, LATER_DATES = [Source("264", DATE, "04")], [Source("264", DATE, "23")]
# The tags that are read in each record; added entries (7..) only where there is no main one (1..).
MAIN_TAGS, ADDED_TAGS = ({f"{group}{kind}" for kind in NAMES} for group in (1, 7))
# The subfields of each tag that are read, or tell what no field of a book has, such as a price. Those with digits say
# nothing of the book: links and sources.
KNOWN_CODES = {"020": "acq", "245": "c", "260": "abefg", "264": "ab", "650": "xyz", "876": "p"}
READ_CODES = {tag: set(codes) for tag, codes in (dict.fromkeys(MAIN_TAGS | ADDED_TAGS, "de4") | KNOWN_CODES).items()}
for source in chain(*TEXT_SOURCES.values(), PUBLICATIONS):
    READ_CODES.setdefault(source.tag, set()).update(source.separators)
READ_TAGS = READ_CODES.keys()
TAGS_WITH_MAIN = READ_TAGS - ADDED_TAGS
# How the role of an added name ($e, $4) says that it is another than the author, or whoever stands for one, unless it
# says that it is one of these, too.
OTHER_ROLE = re.compile(
    r"\b(?:ill|trl|pbl|nrt|pht|spn|prt|hnr|aui|aft|wde|win|wpr|wfw|wac|bsl|fmo|own|dnr|dte|bkd|cov|flm|tr|trad)\b|ill?ustr"
    r"|transl|övers|übers|tradu|překl|przekł|tłum|перевод|fordít|çevir|publish|verl[ae]g|wydaw|foreword|préface|preface"
    r"|introduction|afterword|vorwort|nachwort|einleit|geleit|narrat|sprecher|photogr|fotogr|sponsor|honou?ree|dedicat"
    r"|printer|druck|former owner|vorbesitz|(?:film|sound|music) editor",
    re.IGNORECASE,
)
AUTHOR_ROLE = re.compile(
    r"\b(?:aut|cre|edt|edc|eds?|comp?|isb|dis|hg)\b|autor|author(?! of)|auteur(?! d)|creator|writer(?! of)|compil"
    r"|sammler|verfasser(?!(?:in)? (?:eine|de|von))|(?<!film )(?<!sound )(?<!music )edit|édit|hrsg|heraus",
    re.IGNORECASE,
)
# Of these the first is read, and others are rare.
ONCE_TAGS = READ_TAGS - {"020", "264", "650", "655"}
# The medium, whose mark belongs to the title.
MEDIUM = "h"
# Leader/18: without ISBD punctuation.
EXACT_FORMS = "cn"
# Characters that a subfield cannot contain, those that XML cannot contain or changes, and marks of sorting.
UNSAFE_CHARACTERS = re.compile(f"[\x00-\x1f\x7f-\x9f¬\ufffe\uffff]|<(?=<)|>(?=>)|{UNSAFE_BLANKS}|{AMBIGUOUS}")
PUNCTUATION = ("/", ":", ";", ",", "=")
# ISBD puts a space before a colon and a semicolon; others do not.
SPACE_BEFORE_MARK = re.compile(r"\s+(?=[:;]\s)")
YEAR_PATTERN = re.compile(r"(?<![0-9])[0-9]{4}(?![0-9])")
INTEGER_PATTERN = re.compile(r"-?[0-9]{1,10}")
# The year that a cataloguer writes after a wrong one: `2010 [that is, 2012]`.
CORRECTED_YEAR = re.compile(
    r"(?:that is|i\.? ?e\.?|d\.? ?[ih]\.?|rec(?:te|t\.?)|richtig|sc\.)[,:]? ?(?P<year>[0-9]{4})(?![0-9?-])",
    re.IGNORECASE,
)
UNCERTAIN_YEAR = re.compile(
    r"\?|--|[0-9]-(?![0-9])|\b(?:ca|circa|um|about|approximately|probably|between|before|after|zwischen|vor|nach|wohl"
    r"|vermutlich|or|oder)\b",
    re.IGNORECASE,
)
# Years of other calendars differ by more from the year in field 008.
MAX_DIFFERENCE = 100
# Field 008/06 whose first date is the year of publication: one date, and with another one of copyright, the original,
# production, or a day. With all others the dates are a range or questionable.
SURE_DATES = "strpe"
# What follows the number: its qualifier, or its price.
AFTER_NUMBER = re.compile("[:(]")
# Field 008/23: online, on a disk, electronic.
ELECTRONIC_FORMS = "oqs"
# The date on which the record was created, and the type of the publication date.
UNIMARC_FIELD_100 = re.compile(r"[0-9]{8}[a-z]")
# Leader/06 of records that describe no publication (MARC 21, Authority, Holdings, Classification and Community Data).
RECORD_KINDS = {
    "z": gettext_noop("authority records"),
    "w": gettext_noop("classification records"),
    "q": gettext_noop("community information"),
    **dict.fromkeys("uvxy", gettext_noop("holdings")),
}
# Alma and Aleph name a deleted record in a field of their own.
DELETED_MARKS = {"DEL": "Y", "STA": "DELETED"}
DELETED, COMPONENT = gettext_noop("a deleted record"), gettext_noop("a part of another publication")
# By field the places of codes, the codes of what is no book, and its kind; "" for what may be a book. Microforms and
# tactile texts have codes of their own.
LEADER = "leader"
KIND_CODES = {
    LEADER: (
        (5, re.compile("[dsx]"), DELETED),
        (7, re.compile("[abd]"), COMPONENT),
        (6, re.compile("[^at |]"), ""),
        (7, re.compile("[^abdm |]"), ""),
    ),
    "007": ((0, re.compile("[fh]"), ""),),
    "008": ((23, re.compile("[abcf]"), ""),),
}
# The subfields that name a medium: after a title, and in records of today.
MEDIA = (("245", MEDIUM), ("337", "a"))
# Leader/19: a part of a set that is catalogued as a book.
PARTS_OF_SETS = "abc"


def parse_record(
    record: MarcRecord, number: int, raw: Any, left_out: Counter[str], warnings: tuple[str, ...] = ()
) -> Record:
    """Raises UnreadableFile."""
    fields = group_fields(record)
    kinds = dict.fromkeys(iter_kinds(record, fields))
    problem = describe_other_kind(record, fields, kinds, number)
    values, value_warnings = read_fields(record, fields, left_out)
    if not problem:
        left_out.update(list_unread(fields))
    warnings = (*warnings, *list_unknown_kinds(record, fields, kinds), *value_warnings)
    # The control number with its source.
    record_number = build_record_number(find_data(fields, "001"), find_data(fields, "003"))
    return Record(number, values, raw, problem, warnings, record_number)


def list_unread(fields: Fields) -> set[str]:
    """Returns the tags that are not read, and of the others the subfields, and those that are read once."""
    names = set()
    read_tags = READ_TAGS if fields.keys().isdisjoint(MAIN_TAGS) else TAGS_WITH_MAIN
    for tag, same in fields.items():
        if tag not in read_tags:
            names.update([] if tag.startswith("00") else [tag])
            continue
        read_codes = READ_CODES[tag]
        for field in same:
            for code, _text in field.subfields:
                if code not in read_codes and not code.isdigit():
                    names.add(f"{tag}${code}")
        if tag in ONCE_TAGS and len(same) > 1 and [field.tag for field in same].count(tag) > 1:
            names.add(f"{tag} #2")
    return names


def group_fields(record: MarcRecord) -> dict[str, list[Field]]:
    fields: dict[str, list[Field]] = {}
    for field in record.fields:
        fields.setdefault(field.tag, []).append(field)
    for field in tuple(fields.get("880", ())):
        fields.setdefault((field.get("6") or "")[:3], []).append(field)
    return fields


def describe_other_kind(record: MarcRecord, fields: Fields, kinds: Iterable[tuple[str, str]], number: int) -> str:
    """Returns the error for a record that is not about a book, or in UNIMARC, empty for one in MARC 21, which must have
    field 245 and has no field 200. Raises UnreadableFile for the first record of a file.
    """
    leader = str(record.leader)
    if kind := RECORD_KINDS.get(leader[6]):
        if number == 1:
            raise UnreadableFile(
                _("The file has %(kind)s, not books. Choose bibliographic records instead.") % {"kind": _(kind)}
            )
        return name_field("record", _("It is one of %(kind)s, not a book.") % {"kind": _(kind)})
    if kind := next((kind for kind, _code in kinds if kind), ""):
        return describe_no_book(kind)
    if "245" in fields:
        return ""
    fixed_texts = [field.get("a") or "" for field in fields.get("100", ())]
    if "200" not in fields and not any(map(UNIMARC_FIELD_100.match, fixed_texts[:1])):
        return ""
    advice = _("Where it comes from, choose MARC 21, CSV or RIS instead.")
    if number == 1:
        raise UnreadableFile(" ".join([_("The file is in UNIMARC, which is not MARC 21."), advice]))
    return name_field("record", " ".join([_("It is in UNIMARC, which is not MARC 21."), advice]))


def list_unknown_kinds(record: MarcRecord, fields: Fields, kinds: Iterable[tuple[str, str]]) -> Iterator[str]:
    """Yields the warnings about a record that may be no book."""
    yield from (describe_unknown_kind(code) for kind, code in kinds if not kind)
    for tag, code in MEDIA:
        media = [text for field in fields.get(tag, ()) if (text := field.get(code))]
        if media and all(map(is_other_medium, media)):
            yield describe_unknown_kind(media[0])
    if "773" in fields and record.leader[19] not in PARTS_OF_SETS:
        yield name_field("record", _("Field 773 names a publication that it may be a part of."))


def iter_kinds(record: MarcRecord, fields: Fields) -> Iterator[tuple[str, str]]:
    """Yields what codes say of a record: the kind of what is no book, and "" with the code of what may be none."""
    if any(field.get("a") == text for tag, text in DELETED_MARKS.items() for field in fields.get(tag, ())):
        yield DELETED, ""
    for tag, places in KIND_CODES.items():
        for text in [str(record.leader)] if tag == LEADER else [field.data or "" for field in fields.get(tag, ())]:
            for place, codes, kind in places:
                if match := codes.match(text, place):
                    yield kind, f"{tag}/{place:02} {match[0]}"


def read_fields(record: MarcRecord, fields: Fields, left_out: Counter[str]) -> tuple[dict[str, Any], list[str]]:
    """Returns the values of a record, and the warnings about them."""
    is_exact = record.leader[18] in EXACT_FORMS
    isbn, note = choose_isbn(fields, is_exact=is_exact)
    values: dict[str, Any] = {
        **{
            name: next((text for text, _field in iter_found(fields, sources, is_exact=is_exact)), "")
            for name, sources in TEXT_SOURCES.items()
            if name != "author"
        },
        "id": find_data(fields, "001"),
        "year": find_year(fields),
        "isbn": isbn,
    }
    values["available"] = read_availability(values["available"], "876$j", left_out)
    is_volume = any(field.get("n") for field in fields.get("245", ()))
    warnings = [name_field("020$a", _("It is the ISBN of a set."))] if is_volume and OF_SET.search(note) else []
    values["author"], role = choose_author(iter_found(fields, TEXT_SOURCES["author"], is_exact=is_exact))
    warnings += [role] if role else []
    return {name: value for name, value in values.items() if value != ""}, warnings


def choose_author(names: Iterator[tuple[str, Field]]) -> tuple[str, str]:
    """Returns the main entry, or else the first added one without the role of another, such as an illustrator. If all
    of its kind have one, it is the first, with a warning: a publisher among the corporate bodies wrote no book.
    """
    author, first = next(names, ("", None))
    if not first or first.tag in MAIN_TAGS or not (role := find_other_role(first)):
        return author, ""
    others = (text for text, field in names if field.tag == first.tag and not find_other_role(field))
    sentence = _("The role of this name is “%(role)s”.") % {"role": role}
    return next(((other, "") for other in others), (author, name_field(first.tag, sentence)))


def find_other_role(field: Field) -> str:
    """Returns the role of an added name if it is another than that of an author."""
    roles = ", ".join(field.get_subfields("e", "4"))
    return roles[:MAX_SHOWN_NAME] if OTHER_ROLE.search(roles) and not AUTHOR_ROLE.search(roles) else ""


def find_data(fields: Fields, tag: str) -> str:
    """Returns the content of a control field."""
    same = fields.get(tag)
    return same[0].data or "" if same else ""


def iter_found(fields: Fields, sources: Sequence[Source], *, is_exact: bool) -> Iterator[tuple[str, Field]]:
    """Yields each field with a text, source by source."""
    for source in sources:
        for field in fields.get(source.tag, ()):
            is_read = not source.indicators or field.indicator2 in source.indicators
            if not is_read or (source.unless and field.get(source.unless)):
                continue
            if text := (join_exactly if is_exact else join_punctuated)(field, source.separators):
                yield text, field


def join_exactly(field: Field, separators: Mapping[str, str]) -> str:
    text = ""
    for code, value in field.subfields:
        if code in separators and code != MEDIUM:
            separator = " " if text.endswith(PUNCTUATION) else separators[code]
            text += (separator if text else "") + unescape_characters(clean_white_space(SORTING_MARKS.sub("", value)))
    return text


def join_punctuated(field: Field, separators: Mapping[str, str]) -> str:
    texts: list[str] = []
    for code, value in field.subfields:
        text = value.strip()
        if code == MEDIUM and MEDIUM in separators:
            # A full stop belongs to the word before it.
            texts[-1:] = [f"{' '.join(texts[-1:])}."] if text.endswith(".") else texts[-1:]
            text = text[-1:] if text.endswith(PUNCTUATION) else ""
        texts.append(text if code in separators else "")
    return clean_text(" ".join(filter(None, texts)))


def clean_text(text: str) -> str:
    """Removes the marks of sorting, and the punctuation that introduces the next subfield with the spaces before it
    (ISBD, A.3).
    """
    text = SPACE_BEFORE_MARK.sub("", unescape_characters(clean_white_space(SORTING_MARKS.sub("", text))).rstrip())
    text = text[:-1].strip() if text.endswith(PUNCTUATION) else strip_stop(text).strip()
    # The field is a place for what field 880 has in another script.
    return text if text.strip("<> ") else ""


def find_year(fields: Fields) -> str:
    """Returns the first certain year of publication, else the year of field 008 if it says so and no text says another,
    else a text, which makes the record doubtful. The year of copyright counts where there is no other.
    """
    published, (coded, is_sure) = list_dates(fields, PUBLICATIONS), read_coded_year(fields)
    if year := next(filter(None, map(find_certain_year, published)), ""):
        is_other = is_sure and len(year) == len(coded) and abs(int(year) - int(coded)) > MAX_DIFFERENCE
        return f"{year} (008: {coded})" if is_other else year
    copyrights, later = list_dates(fields, COPYRIGHTS), list_dates(fields, LATER_DATES)
    dated = list(filter(YEAR_PATTERN.search, published))
    uncertain = list(filter(UNCERTAIN_YEAR.search, published))
    if is_sure and not uncertain and (not dated or coded in dated[0]):
        return coded
    copyright_year = next(filter(None, map(find_certain_year, copyrights)), "")
    # The note makes the year doubtful.
    others = [f"{text} (264 _2, _3)" for text in later]
    return next(
        iter([*dated, *uncertain, *filter(None, [copyright_year, coded]), *copyrights, *others, *published]), ""
    )


def list_dates(fields: Fields, sources: Sequence[Source]) -> list[str]:
    return [text.strip() for text, _field in iter_found(fields, sources, is_exact=True)]


def find_certain_year(text: str) -> str:
    if INTEGER_PATTERN.fullmatch(text):
        return text
    match = SURE_YEAR.fullmatch(text) or CORRECTED_YEAR.search(text)
    return match["year"] if match else ""


def read_coded_year(fields: Fields) -> tuple[str, bool]:
    """Returns the year of field 008 and whether it is sure; the text of its two dates if it is not."""
    data = find_data(fields, "008")
    kind, first, second = data[6:7], data[7:11], data[11:15]
    if not YEAR_PATTERN.fullmatch(first):
        return "", False
    return (first, True) if kind in SURE_DATES else (f"{first}-{second.strip()}", False)


def choose_isbn(fields: Fields, *, is_exact: bool) -> tuple[str, str]:
    """Returns the ISBN of this edition without its qualifier, and what is written beside it."""
    qualified = [
        (text if is_exact else AFTER_NUMBER.split(text)[0].strip(" ;"), " ".join([text, *field.get_subfields("q")]))
        for field in fields.get("020", ())
        for text in map(unescape_characters, field.get_subfields("a"))
    ]
    return choose_qualified(qualified, is_electronic=len(qualified) > 1 and has_electronic_form(fields))


def has_electronic_form(fields: Fields) -> bool:
    media = (field.get(MEDIUM) or "" for field in fields.get("245", ()))
    return find_data(fields, "008")[23:24] in (*ELECTRONIC_FORMS,) or any(map(ELECTRONIC.search, media))


def build_record(book: ExportedBook) -> MarcRecord:
    record = MarcRecord(leader="00000nam a22000003c 4500")
    source, number = split_record_number(book.isbn)
    control_fields = {"001": number or str(book.id), "003": source, "005": format_change_time(book)}
    control_fields["008"] = format_fixed_field(book)
    record.add_field(*(Field(tag, data=data) for tag, data in control_fields.items() if data))
    texts = {
        book_field.marc: escape_characters(text, UNSAFE_CHARACTERS)
        for book_field, text in iter_texts(book)
        if not (number and book_field.name == "isbn")
    }
    for (tag, indicators, code), text in sorted(texts.items()):
        record.add_field(Field(tag, Indicators(*indicators), [Subfield(code, text)]))
    return record


def format_change_time(book: ExportedBook) -> str:
    """Returns the time of the latest change for field 005: `yyyymmddhhmmss.f`."""
    digits = re.sub("[^0-9]", "", book.updated_at)
    return f"{digits[:14]}.{digits[14:15]}"


def format_fixed_field(book: ExportedBook) -> str:
    """Returns field 008 of a book: the date of entry, and the year if it has four digits. All else is marked as
    unknown.
    """
    entered = re.sub("[^0-9]", "", book.created_at)[2:8]
    year = f"s{book.year}    " if 1000 <= book.year <= 9999 else "nuuuuuuuu"
    return f"{entered}{year}xx {'|' * 17}und||"
