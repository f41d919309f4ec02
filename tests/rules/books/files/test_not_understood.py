"""What a reader does not understand, it says: in the record, or in the note about what no record shows."""

from collections import Counter
from io import BytesIO
from typing import Any

import pytest

from books.files.columns.tables import list_ignored
from books.files.formats import ris
from books.files.formats.records import Record, UnreadableFile, describe_left_out, split_values
from books.files.formats.registry import FORMATS
from books.files.formats.tex import decode_tex
from books.files.parsing import ImportRules, parse_records
from tests.support.book_files import build_exported_book, read_records, write_books


def read_one(name: str, text: str) -> Record:
    [record] = read_records(name, text.encode())
    return record


RIS = "TY  - BOOK\nTI  - A\nER  - \n"


def list_left_out(name: str, data: bytes) -> str:
    table = FORMATS[name].read(BytesIO(data), "")
    assert [*table.records]
    return describe_left_out(table.left_out)


KINDS = {
    "record: It is a part of a book, not a book.": [
        *("TY  - CHAP", "TY  - ECHAP", "TY  - CONF", "TY  - CPAPER"),
        *("@incollection", "@InProceedings", "@inbook", "@suppbook", "@inreference", "@conference"),
    ],
    "record: It is an article, not a book.": ["TY  - JOUR", "TY  - EJOUR", "TY  - NEWS", "TY  - MGZN", "@article"],
    "record: Its kind is “VIDEO”, which may be no book.": ["TY  - VIDEO"],
    "record: Its kind is “misc”, which may be no book.": ["@misc"],
    "record: Its kind is “”, which may be no book.": ["TY  -"],
    "": ["TY  - BOOK", "TY  - EBOOK", "TY  - THES", "@book", "@BOOK", "@phdthesis", "@proceedings"],
}


@pytest.mark.parametrize(("said", "kind"), [(said, kind) for said, kinds in KINDS.items() for kind in kinds])
def test_what_is_no_book_is_said_by_its_kind(said: str, kind: str) -> None:
    is_bibtex = kind.startswith("@")
    text = f"{kind}{{x, title = {{A}}}}" if is_bibtex else f"{kind}\nTI  - A\nER  - \n"
    record = read_one("bibtex" if is_bibtex else "ris", text)
    may_be_book = said.endswith("may be no book.")
    assert (record.problem, record.warnings) == (("", (said,)) if may_be_book else (said, ()))


MEDIA: dict[str, dict[str, str]] = {
    "Material Type": {"Book": "", "DVD": "DVD", "Music recording": "Music recording", "Kit": "Kit", " ": ""},
    "itemtype": {"BK": "", "VM": "VM", "2WEEK": "2WEEK", "videoRecording": "videoRecording"},
    "Binding": {"Kindle Edition": "", "Blu-ray": "Blu-ray", "23 cm": "", "8°": ""},
    "Medienart": {"Buch": "", "Hörbuch": "Hörbuch"},
}
STATES: dict[str, dict[object, str]] = {
    "Lifecycle": {"Deleted": "Lifecycle Deleted", "In Repository": ""},
    "deleted": {"t": "deleted t", True: "deleted True", "f": "", False: "", None: "", "0": ""},
    "itemlost": {"4": "itemlost 4", 1: "itemlost 1", 0: "", "no": ""},
    "Status": {"Lost": "Status Lost", "lost (2019)": "Status lost (2019)", "Checked Out": "", "1": ""},
}
PART = "record: It is a part of a book, not a book."


@pytest.mark.parametrize(("column", "text"), [(column, text) for column, texts in MEDIA.items() for text in texts])
def test_a_column_that_names_a_medium_tells_what_is_no_book(column: str, text: str) -> None:
    [record] = parse_records([Record(1, {column: text})], ImportRules({}))
    code = MEDIA[column][text]
    assert record.warnings == ((f"record: Its kind is “{code}”, which may be no book.",) if code else ())
    assert list_ignored([column, "Shelf"], {}) == ["Shelf"]
    assert [record.warnings for record in parse_records([Record(1, {column: None})], ImportRules({}))] == [()]
    # A column with a genre tells nothing else, unless it is the kind that stands for one.
    [mapped] = parse_records([Record(1, {column: text})], ImportRules({"genre": column}))
    assert bool(mapped.warnings) == (bool(code) and column != "Binding")
    [part] = parse_records([Record(1, {column: "bookSection"})], ImportRules({}))
    assert part.problem == PART


@pytest.mark.parametrize(
    ("column", "value"), [(column, value) for column, values in STATES.items() for value in values]
)
def test_a_column_of_a_state_tells_which_books_are_gone(column: str, value: object) -> None:
    [record] = parse_records([Record(1, {column: value})], ImportRules({}))
    code = STATES[column][value]
    assert record.warnings == ((f"record: Its kind is “{code}”, which may be no book.",) if code else ())
    # What else it tells, nothing reads.
    assert list_ignored([column], {}) == [column]
    [mapped] = parse_records([Record(1, {column: value})], ImportRules({"available": column}))
    assert mapped.warnings == ()


# Formats, and what is around a record of each in its file.
FRAMES = {
    "bibtex": "@book{x, …}",
    "ris": "TY  - BOOK\n…\nER  - \n",
    "marcxml": "<record>…</record>",
    "jsonl": "[{…}]",
    "whole bibtex": "…",
}
RIS_AUTHORS, XML_FIELD = "AU  - C\nAU  - D", "<datafield tag='{}'><subfield code='{}'>{}</subfield></datafield>"
NO_FIELD = "record: It has no field at “{}”."
TWO_VALUES = "row: It has two values of one name."
# The content of records, what is read of them, and what is said: errors, warnings, and what is left out.
RECORDS: dict[str, list[tuple[str, dict[str, Any], str]]] = {
    "bibtex": [
        ("title = {Quay}, subtitle = {a history}", {"title": "Quay: a history"}, ""),
        ("author = {Metin And and Ann Lee and others}", {"author": "Metin And; Ann Lee; et al."}, ""),
        ("author = {NATIONAL GALLERY AND MUSEUM}", {"author": "NATIONAL GALLERY AND MUSEUM"}, ""),
        ("title = {A}, Title = {B}, title = {C}", {"title": "A"}, "Left out: title #2"),
        ("title = {A}, volume = 2, edition = 1", {"title": "A"}, "Left out: edition, volume"),
        ("title = {A}, subtitle = {}, volume = {}", {"title": "A"}, ""),
        ("year = {}, date = 1999, keywords = \"\", genre = {B}", {"year": "1999", "genre": "B"}, ""),
        ("date = {1999~}", {"year": "1999?"}, ""),
        ("date = {May~1999}", {"year": "May 1999"}, ""),
        ("library = {lent}", {"available": False}, ""),
        ("library = {Room 3}", {}, "Left out: library"),
        ('title = "On " # sea, month = jan', {"title": "On sea"},
         "title: Nothing defines the abbreviation “sea”. Left out: month"),
        ("title = {A} (x)", {}, NO_FIELD.format("(x)")),
    ],
    "whole bibtex": [
        ("@string{sea = {tides}}\n@book{x, title = sea}", {"title": "tides"}, ""),
        ("% A file\nA comment\n\n@book{x, title = {A}}\nbook{y}\n", {"title": "A"},
         "Left out: lines outside of the entries"),
    ],
    "ris": [
        ("TI  - A\nA2  - Berg\nAU  - Marlow\nVL  - 2\nVL  - 3", {"title": "A", "author": "Marlow"},
         "Left out: A2, VL"),
        (f"TI  - A\nTI  - B\nPY  - 1999\nPY  - 2001\n{RIS_AUTHORS}", {"title": "A", "year": "1999", "author": "C; D"},
         "Left out: PY #2, TI #2"),
        ("TI  - \nT1  - A\nPY  -\nY1  - 1999\nVL  - ", {"title": "A", "year": "1999"}, ""),
        ("C1  - available", {"available": True}, ""),
        ("C1  - Room 3", {}, "Left out: C1"),
        *((f"PY  - {text}", {"year": "1999"}, "") for text in ("1999/05/01/Spring", "1999///", "1999/5")),
        *((f"PY  - 2001/{text}", {"year": "2001"}, "")
          for text in ("Spring", "January/12", "/Summer", "Mar/", " / /", "001/", "05/01/No. 12345, 2001")),
        *((f"PY  - {text}", {"year": text}, "") for text in ("2001/2003", "2001/12/2002/01", "2001/02/03/1999")),
    ],
    "marcxml": [
        ("", {}, "record: It has no fields."),
        (XML_FIELD.format("245", "a", "Tide <em>and</em> quay"), {"title": "Tide and quay"}, ""),
        (XML_FIELD.format("876", "j", "lent"), {"available": False}, ""),
        (XML_FIELD.format("876", "j", "Room 3"), {}, "Left out: 876$j"),
        ("<datafield tag='245'/><note>x</note><note/><leader/>", {}, "Left out: <note>"),
        ("<datafield tag='245'>x</datafield>", {}, "Left out: text outside of the subfields of 245"),
        ("<datafield tag='245'>\n<subfield code='j'/></datafield>", {}, "Left out: 245$j"),
    ],
    "jsonl": [
        ('"title": "A", "title": "B"', {"title": "B"}, TWO_VALUES),
        ('"title" \n: "A", "b": {"a": 1, "a" : 2}', {"title": "A", "b": {"a": 2}}, TWO_VALUES),
        ('"a": "\\"b\\": c", "b": [{"a": 1}, {"a": ":"}]', {"a": '"b": c', "b": [{"a": 1}, {"a": ":"}]}, ""),
    ],
}  # fmt: skip


@pytest.mark.parametrize("frame", RECORDS)
def test_what_is_read_and_what_is_not_is_said(frame: str) -> None:
    name, results = frame.rpartition(" ")[2], []
    for content, _values, _said in RECORDS[frame]:
        table = FORMATS[name].read(BytesIO(FRAMES[frame].replace("…", content).encode()), "")
        [record] = table.records
        left_out = [f"Left out: {', '.join(sorted(table.left_out))}"] if +Counter(table.left_out) else []
        said = " ".join(filter(None, [record.problem, *record.warnings, *left_out]))
        results.append((content, record.values, said))
    assert results == RECORDS[frame]


def test_the_note_about_what_is_left_out_is_short() -> None:
    json = b'{"title": "A"}\n' * 100 + b'{"title": "A", "notes": "x"}\n' * 2
    assert list_left_out("jsonl", json) == "Left out: notes (2)."
    for name in ("bibtex", "ris", "marcxml"):
        assert list_left_out(name, write_books(name, [build_exported_book()])) == ""
    assert describe_left_out({"a": 1, "b": 2}) == "Left out: b (2), a (1)."
    assert describe_left_out({str(number): 1 for number in range(129, 99, -1)}).endswith("119 (1), ….")
    assert describe_left_out({"x" * 1000: 2000}) == f"Left out: {'x' * 64} (2,000)."


def test_cells_between_other_quotation_marks_are_refused() -> None:
    for header in ("'title','year'", "“title”,“year”", "«title»,«year»"):
        with pytest.raises(UnreadableFile, match="other quotation marks"):
            read_records("csv", f"{header}\n'Emma',1815\n".encode())
    assert read_records("csv", b"'title',year\n'Emma',1815\n")[0].values == {"'title'": "'Emma'", "year": "1815"}


TEX = {
    r"D.\,E.": "D. E.",
    r"{\TH}orbergsson, {\DJ}or{\dj}e": "Þorbergsson, Đorđe",
    r"Nguy{\~{\^e}}n, Tr{\`{\^a}}n, Hu{\d{\^e}}": "Nguyễn, Trần, Huệ",
    r"O\textquoteright{}Hara \ldots \dots": "O’Hara ……",
    r"\LaTeX{} \pounds 5, $\alpha$, \S 3": "LaTeX £5, α, §3",
    r"\guillemotleft a\guillemotright{} 5\textdegree": "«a» 5°",
    r"Hy\-phen a\\b \href{http://u}{t} \url{http://u}": "Hyphen a b t http://u",
    r"``x'' --- 1--2 ?`y": "“x” — 1–2 ¿y",
    r"Erd\H os, {\bf b} \textit{me} na{\"\i}ve \c{c} \'{E}t": "Erdős, b me naïve ç Ét",
    "costs $5 and $6, 100% & it_x": "costs $5 and $6, 100% & it_x",
}


@pytest.mark.parametrize("text", TEX)
def test_tex_is_read_as_text(text: str) -> None:
    assert decode_tex(text) == (TEX[text], [])


@pytest.mark.parametrize(
    "command", [r"\foo{bar}", r"\foo", r"\'", r"\^{}", r"\cite{a}", r"\today", r"\input{x}", r"\t{oo}"]
)
def test_an_unknown_command_stays_and_makes_the_record_doubtful(command: str) -> None:
    record = read_one("bibtex", f"@book{{x, title = {{A {command}, é}}, author = {{B}}}}")
    assert record.values["title"] == f"A {command}, é"
    assert record.warnings == (f"title: The command “{command}” is not known.",)


def test_a_value_that_grows_without_end_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ris, "MAX_RECORD_CHARACTERS", 100)
    for text in ("x" * 100, "x\n" * 100, "9780306406157\nSN  - " * 10):
        [long, next_one] = read_records("ris", f"TY  - BOOK\nSN  - {text}\nER  - \n{RIS}".encode())
        assert long.problem == "record: It has more than 100 characters."
        # Of the rest only the end is kept.
        [(_start, lines), *_next] = ris.iter_tag_pieces(f"TY  - BOOK\nSN  - {text}\nER  - \n".splitlines())
        assert sum(len(line) for _tag, line in lines) <= 120
        assert next_one.values == {"title": "A"}
    for notes in ("N1  - xxxxx\nxxxxx\n" * 20, "N1  - \nxx\nN2  - \n \n"):
        # What nothing reads has no limit.
        text = RIS.replace("TI", f"{notes}TI")
        assert list_left_out("ris", text.encode() * 2) == "Left out: N1 (2)."
        assert [len(lines) <= 6 for _start, lines in ris.iter_tag_pieces(text.splitlines())] == [True]
        assert read_records("ris", f"N1  - x\n{text}".encode())[1].values == {"title": "A"}
    strings = "".join(f"@string{{a{number + 1} = a{number} # a{number}}}\n" for number in range(40))
    text = f"@string{{a0 = {{0123456789}}}}\n{strings}@book{{x, title = {{A}}}}"
    records = read_records("bibtex", text.encode())
    assert records[0].problem == "record: It has more than 1,048,576 characters."
    assert records[-1].values == {"title": "A"}


def test_a_heading_is_no_list() -> None:
    assert split_values("Cats | Dogs, tame| Mice") == ["Cats", "Dogs, tame", "Mice"]
    assert split_values("Freedonia -- History -- War, 1861-1865") == ["Freedonia -- History -- War, 1861-1865"]
    assert split_values("['Novel', \"Sea, and land\"]") == ["Novel", "Sea, and land"]
    assert [split_values(text) for text in ("a, b,", "a; b, c", " ", "|")] == [["a", "b"], ["a", "b, c"], [], []]
