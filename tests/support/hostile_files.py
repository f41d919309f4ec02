"""Files that strangers make to fill the memory of their reader, or to keep it busy for ever."""

from collections.abc import Callable, Mapping
from io import BytesIO
from zipfile import ZIP_BZIP2, ZIP_DEFLATED, ZipFile

from tests.support.program_files import write_workbook

SHEET = "xl/worksheets/sheet1.xml"
SHARED_TEXTS = "xl/sharedStrings.xml"
MAIN = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
RELATIONS = "http://schemas.openxmlformats.org/package/2006/relationships"
KINDS = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
WORKSHEET, SHARED = f'<worksheet xmlns="{MAIN}">', f'<sst xmlns="{MAIN}">'
HEADER_ROW = '<row r="1"><c r="A1" t="inlineStr"><is><t>isbn</t></is></c></row>'
LEADER = b"00000nam  2200000 a 4500"
BLANK_PART = "xl/worksheets/blank.xml"
SHARED_RELATIONS = {
    "xl/_rels/workbook.xml.rels": (
        f'<Relationships xmlns="{RELATIONS}">'
        f'<Relationship Id="rId1" Type="{KINDS}/worksheet" Target="worksheets/sheet1.xml"/>'
        f'<Relationship Id="rId9" Type="{KINDS}/sharedStrings" Target="sharedStrings.xml"/></Relationships>'
    )
}


def build_workbook(parts: Mapping[str, str | bytes], compression: int = ZIP_DEFLATED) -> bytes:
    """Returns a workbook of which these parts are replaced or added."""
    file = BytesIO()
    with ZipFile(BytesIO(write_workbook(["isbn"]))) as source, ZipFile(file, "w", compression) as target:
        names = dict.fromkeys([*source.namelist(), *parts])
        for name in names:
            target.writestr(name, parts[name] if name in parts else source.read(name))
    return file.getvalue()


def build_sheet(rows: str, before: str = "") -> bytes:
    return build_workbook({SHEET: f"{WORKSHEET}{before}<sheetData>{HEADER_ROW}{rows}</sheetData></worksheet>"})


def build_row(cells: str) -> bytes:
    return build_sheet(f'<row r="2">{cells}</row>')


def list_rows(size: int, row: str) -> bytes:
    return build_sheet("".join(row.format(number) for number in range(2, size + 2)))


def show_shared_text(size: int) -> bytes:
    rows = "".join(f'<row r="{row}"><c t="s"><v>0</v></c></row>' for row in range(2, size // 40 + 2))
    sheet = f"{WORKSHEET}<sheetData>{HEADER_ROW}{rows}</sheetData></worksheet>"
    return share_texts(f"<si><t>{'x' * 900_000}</t></si>", {SHEET: sheet})


def share_texts(texts: str, parts: Mapping[str, str]) -> bytes:
    return build_workbook({SHARED_TEXTS: f"{SHARED}{texts}</sst>", **parts, **SHARED_RELATIONS})


def define_entities(size: int) -> bytes:
    document_type = f'<!DOCTYPE x [<!ENTITY a "{"x" * size}"><!ENTITY b "&a;&a;&a;&a;">]>'
    return build_workbook({SHEET: f"{document_type}{WORKSHEET}<sheetData><row><c><v>&b;</v></c></row></sheetData>"})


def name_outside_entity(size: int) -> bytes:
    text = f'<!DOCTYPE x [<!ENTITY a SYSTEM "file:///etc/passwd">]>{WORKSHEET}&a;</worksheet>'
    return build_workbook({SHEET: text})


def repeat_part(size: int) -> bytes:
    file = BytesIO(build_sheet(""))
    with ZipFile(file, "a") as archive:
        archive.infolist()[0].filename = SHEET
        archive.filelist.append(archive.getinfo(SHEET))
        archive.writestr("more", b"")
    return file.getvalue()


def name_marc_xml_elements(size: int) -> bytes:
    records = (f"<record><x{number}/></record>" for number in range(size // 30))
    return f"<collection>{''.join(records)}</collection>".encode()


def build_marc_xml(tag: str, text: str) -> bytes:
    field = f'<datafield tag="{tag}"><subfield code="a">{text}</subfield></datafield>'
    return f"<record><leader/>{field}</record>".encode()


def overlap_marc_fields(size: int) -> bytes:
    """Each entry of a directory names the same long field."""
    field = b"00\x1fa" + b"x" * 9_994 + b"\x1e"
    entries = min(size, 90_000) // 12
    return (LEADER + b"245999900000" * entries + b"\x1e" + field + b"\x1d") * max(1, size // 90_000)


def pile_accents(size: int) -> bytes:
    field = b"00\x1fa" + b"\xe2\xf2" * (min(size, 9_900) // 2) + b"a\x1e"
    return (LEADER + b"245%04d00000\x1e" % len(field) + field + b"\x1d") * max(1, size // 9_900)


def double_strings(size: int) -> bytes:
    """Each abbreviation is the one before it twice."""
    lines = [f"@string{{a{number + 1} = a{number} # a{number}}}" for number in range(40)]
    return ("@string{a0 = {0123456789}}\n" + "\n".join(lines) + "\n@book{x, title = a40}\n").encode()


LIMIT = "The file takes too much time or memory to be read. Divide it, or export it anew."
TOO_MANY_COLUMNS, NO_COLUMNS = "The file has more than 1,000 columns.", "The first row names no columns."
Build = Callable[[int], bytes]
# The name of a format, a file of about so many bytes or one that asks for so much, and how many records without a
# problem it has, or why it is refused.
HOSTILE_FILES: dict[str, tuple[str, Build, int | str]] = {
    "many columns": ("csv", lambda size: b",".join(b"a%d" % n for n in range(size // 6)) + b"\n", TOO_MANY_COLUMNS),
    "a long line": ("csv", lambda size: b"title,author\n" + b"x," * size, 0),
    "line ends in cells": ("csv", lambda size: b"title,author\n" + b'"a\n",' * (size // 5), 0),
    "blanks": ("csv", lambda size: b"title,author\n" + (b" " * 100_000 + b"x,y\n") * max(1, size // 100_000), 3),
    "nested": ("jsonl", lambda size: b'{"title": ' + b"[" * size + b"]" * size + b"}\n", 0),
    "nested a little": ("jsonl", lambda size: b'{"a": %b}\n' % (b"[" * min(size, 100) + b"]" * min(size, 100)), 0),
    "many members": ("jsonl", lambda size: b"{%b}\n" % b",".join(b'"a%d":1' % n for n in range(size // 10)),
                     TOO_MANY_COLUMNS),
    "digits": ("jsonl", lambda size: b'{"year": ' + b"9" * size + b"}\n", 0),
    "many objects": ("jsonl", lambda size: b'[{"isbn": "1\\""}' + b',{"isbn":\n"1"}' * (size // 14) + b"]", 25_001),
    "nested array": ("jsonl", lambda size: b"[" * (size // 2) + b"]" * (size // 2), LIMIT),
    "empty elements": ("jsonl", lambda size: b"[{}" + b"," * size + b"]", "The array is damaged on line 1."),
    "fields that overlap": ("marc", overlap_marc_fields, 0),
    "accents": ("marc", pile_accents, LIMIT),
    "nested record": ("marcxml", lambda size: b"<record>" + b"<a>" * size + b"</a>" * size + b"</record>", LIMIT),
    "names of elements": ("marcxml", name_marc_xml_elements, 0),
    # A pattern of blanks would be tried from each of them.
    "blanks in a title": ("marcxml", lambda size: build_marc_xml("245", " " * size + "x"), 1),
    "parentheses": ("marcxml", lambda size: build_marc_xml("020", "(" * size), 1),
    "doubled strings": ("bibtex", double_strings, 1),
    "a long string": ("bibtex", lambda size: b"@string{a = {%b}}\n" % (b"x" * 500_000)
                      + b"@book{x, title = a}\n" * max(size // 20, 100), LIMIT),
    "many authors": ("bibtex", lambda size: b"@book{x, author = {" + b"a and " * (size // 6) + b"a}}\n", 1),
    "blanks of authors": ("bibtex", lambda size: b"@book{x, author = {a" + b" " * size + b"b}}\n", 1),
    "blanks of an entry": ("bibtex", lambda size: b" " * (size // 2) + b"@book(x,\n" + b"\n" * (size // 2)
                           + b"title = {a})\n", 1),
    "a long value": ("ris", lambda size: b"TY  - BOOK\nTI  - a\n" + b"b\n" * (size // 2) + b"ER  - \n", 1),
    "number of a row": ("xlsx", lambda size: build_sheet(f'<row r="{size}"><c><v>1</v></c></row>'), 1),
    "dimension": ("xlsx", lambda size: build_sheet(f'<row r="{size}"/>', '<dimension ref="A1:XFD1048576"/>'), 0),
    "cells far right": ("xlsx", lambda size: list_rows(size // 50, '<row r="{0}"><c r="XFD{0}"><v>1</v></c></row>'),
                        LIMIT),
    "beyond the last column": ("xlsx", lambda size: build_row(f'<c r="ZZZ2"><v>{size}</v></c>'), 1),
    "a cell again": ("xlsx", lambda size: build_row('<c r="A2"><v>1</v></c>' * (size // 22)), 1),
    "nested sheet": ("xlsx", lambda size: build_sheet("<x>" * size + "</x>" * size), 0),
    "a long attribute": ("xlsx", lambda size: build_sheet(f'<row r="2" x="{"y" * size}"/>'), 0),
    "elements of a sheet": ("xlsx", lambda size: list_rows(size // 8, "<x{}/>"), 0),
    "many texts": ("xlsx", lambda size: share_texts("<si><t>ab</t></si>" * (size // 18), {}), 0),
    "a text of many cells": ("xlsx", show_shared_text, LIMIT),
    # What a document type defines is not read.
    "entities": ("xlsx", define_entities, NO_COLUMNS),
    "an outside entity": ("xlsx", name_outside_entity, NO_COLUMNS),
    "much in little": ("xlsx", lambda size: build_workbook({BLANK_PART: b" " * max(size, 2 * 2**20)}), 0),
    "another compression": ("xlsx", lambda size: build_workbook({BLANK_PART: b" " * size}, ZIP_BZIP2),
                            "It is no workbook that can be read."),
    "a part again": ("xlsx", repeat_part, 0),
    "many parts": ("xlsx", lambda size: build_workbook({f"{n:0250}": b"" for n in range(max(size // 600, 3_600))}), 0),
}  # fmt: skip
