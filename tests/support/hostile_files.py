"""Files that strangers make to fill the memory of their reader, or to keep it busy for ever.

Each function takes a size and returns a file of about so many bytes, or one that asks for so much.
"""

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


def number_row(size: int) -> bytes:
    return build_sheet(f'<row r="{size}"><c><v>1</v></c></row>')


def claim_dimension(size: int) -> bytes:
    return build_sheet(f'<row r="{size}"/>', '<dimension ref="A1:XFD1048576"/>')


def place_cells_far_right(size: int) -> bytes:
    rows = (f'<row r="{number}"><c r="XFD{number}"><v>1</v></c></row>' for number in range(2, size // 50 + 2))
    return build_sheet("".join(rows))


def place_cell_beyond_the_last_column(size: int) -> bytes:
    return build_sheet('<row r="2"><c r="ZZZ2"><v>1</v></c></row>')


def repeat_cells(size: int) -> bytes:
    return build_sheet('<row r="2">' + '<c r="A2"><v>1</v></c>' * (size // 22) + "</row>")


def nest_sheet(size: int) -> bytes:
    return build_sheet("<x>" * size + "</x>" * size)


def lengthen_attribute(size: int) -> bytes:
    return build_sheet(f'<row r="2" x="{"y" * size}"/>')


def name_elements(size: int) -> bytes:
    return build_sheet("".join(f"<x{number}/>" for number in range(size // 8)))


def share_texts(size: int) -> bytes:
    return build_workbook({SHARED_TEXTS: SHARED + "<si><t>ab</t></si>" * (size // 18) + "</sst>", **SHARED_RELATIONS})


def show_shared_text(size: int) -> bytes:
    """One long text that many cells show."""
    rows = "".join(f'<row r="{row}"><c t="s"><v>0</v></c></row>' for row in range(2, size // 40 + 2))
    sheet = f"{WORKSHEET}<sheetData>{HEADER_ROW}{rows}</sheetData></worksheet>"
    texts = f"{SHARED}<si><t>{'x' * 900_000}</t></si></sst>"
    return build_workbook({SHARED_TEXTS: texts, SHEET: sheet, **SHARED_RELATIONS})


def define_entities(size: int) -> bytes:
    document_type = f'<!DOCTYPE x [<!ENTITY a "{"x" * size}"><!ENTITY b "&a;&a;&a;&a;">]>'
    return build_workbook({SHEET: f"{document_type}{WORKSHEET}<sheetData><row><c><v>&b;</v></c></row></sheetData>"})


def name_outside_entity(size: int) -> bytes:
    text = f'<!DOCTYPE x [<!ENTITY a SYSTEM "file:///etc/passwd">]>{WORKSHEET}&a;</worksheet>'
    return build_workbook({SHEET: text})


def unpack_to_much(size: int) -> bytes:
    return build_workbook({"xl/worksheets/blank.xml": b" " * max(size, 2 * 2**20)})


def pack_otherwise(size: int) -> bytes:
    return build_workbook({"xl/worksheets/blank.xml": b" " * size}, ZIP_BZIP2)


def repeat_part(size: int) -> bytes:
    file = BytesIO(build_sheet(""))
    with ZipFile(file, "a") as archive:
        archive.infolist()[0].filename = SHEET
        archive.filelist.append(archive.getinfo(SHEET))
        archive.writestr("more", b"")
    return file.getvalue()


def list_parts(size: int) -> bytes:
    return build_workbook({f"{number:0250}": b"" for number in range(max(size // 600, 3_600))})


def nest_marc_xml(size: int) -> bytes:
    return b"<record>" + b"<a>" * size + b"</a>" * size + b"</record>"


def name_marc_xml_elements(size: int) -> bytes:
    records = (f"<record><x{number}/></record>" for number in range(size // 30))
    return f"<collection>{''.join(records)}</collection>".encode()


def pad_title(size: int) -> bytes:
    """A pattern of blanks would be tried from each of them."""
    return build_marc_xml("245", " " * size + "x")


def open_parentheses(size: int) -> bytes:
    return build_marc_xml("020", "(" * size)


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


def repeat_string(size: int) -> bytes:
    """A long abbreviation that many entries name."""
    return b"@string{a = {" + b"x" * 500_000 + b"}}\n" + b"@book{x, title = a}\n" * max(size // 20, 100)


def repeat_authors(size: int) -> bytes:
    return b"@book{x, author = {" + b"a and " * (size // 6) + b"a}}\n"


def pad_authors(size: int) -> bytes:
    return b"@book{x, author = {a" + b" " * size + b"b}}\n"


def pad_entry_start(size: int) -> bytes:
    return b" " * (size // 2) + b"@book(x,\n" + b"\n" * (size // 2) + b"title = {a})\n"


def continue_ris_value(size: int) -> bytes:
    return b"TY  - BOOK\nTI  - a\n" + b"b\n" * (size // 2) + b"ER  - \n"


def nest_json(size: int) -> bytes:
    return b'{"title": ' + b"[" * size + b"]" * size + b"}\n"


def nest_json_a_little(size: int) -> bytes:
    return b'{"title": ' + b"[" * 100 + b"]" * 100 + b"}\n"


def add_json_members(size: int) -> bytes:
    return b"{" + b",".join(b'"a%d":1' % number for number in range(size // 10)) + b"}\n"


def list_json_objects(size: int) -> bytes:
    return b'[{"isbn": "1\\""}' + b',{"isbn":\n"1"}' * (size // 14) + b"]"


def nest_json_array(size: int) -> bytes:
    return b"[" * (size // 2) + b"]" * (size // 2)


def space_json_array(size: int) -> bytes:
    return b"[{}" + b"," * size + b"]"


def write_json_digits(size: int) -> bytes:
    return b'{"year": ' + b"9" * size + b"}\n"


def add_csv_columns(size: int) -> bytes:
    return b",".join(b"a%d" % number for number in range(size // 6)) + b"\n"


def lengthen_csv_line(size: int) -> bytes:
    return b"title,author\n" + b"x," * size


def continue_csv_row(size: int) -> bytes:
    """A row whose cells have line ends."""
    return b"title,author\n" + b'"a\n",' * (size // 5)


def pad_csv_cells(size: int) -> bytes:
    return b"title,author\n" + (b" " * 100_000 + b"x,y\n") * max(1, size // 100_000)


SHARED_RELATIONS = {
    "xl/_rels/workbook.xml.rels": (
        f'<Relationships xmlns="{RELATIONS}">'
        f'<Relationship Id="rId1" Type="{KINDS}/worksheet" Target="worksheets/sheet1.xml"/>'
        f'<Relationship Id="rId9" Type="{KINDS}/sharedStrings" Target="sharedStrings.xml"/></Relationships>'
    )
}
# By the name of the format.
HOSTILE_FILES: dict[str, list[Callable[[int], bytes]]] = {
    "csv": [add_csv_columns, lengthen_csv_line, continue_csv_row, pad_csv_cells],
    "jsonl": [
        nest_json,
        nest_json_a_little,
        add_json_members,
        write_json_digits,
        list_json_objects,
        nest_json_array,
        space_json_array,
    ],
    "marc": [overlap_marc_fields, pile_accents],
    "marcxml": [nest_marc_xml, name_marc_xml_elements, pad_title, open_parentheses],
    "bibtex": [double_strings, repeat_string, repeat_authors, pad_authors, pad_entry_start],
    "ris": [continue_ris_value],
    "xlsx": [
        number_row,
        claim_dimension,
        place_cells_far_right,
        place_cell_beyond_the_last_column,
        repeat_cells,
        nest_sheet,
        lengthen_attribute,
        name_elements,
        share_texts,
        show_shared_text,
        define_entities,
        name_outside_entity,
        unpack_to_much,
        pack_otherwise,
        repeat_part,
        list_parts,
    ],
}
