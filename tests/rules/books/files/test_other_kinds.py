"""A file of a kind that is not read is refused by the name of its kind, and with what to choose instead."""

import gzip
from io import BytesIO

import pytest

from books.files.formats.other_kinds import OTHER_KINDS
from books.files.formats.records import UnreadableFile
from books.files.formats.registry import find_format

XML, ISBNS = '<?xml version="1.0"?>\n', "978-0-14-143951-8\r\n0141439580\r\n"
# A file of each kind, by its name and by the name of the kind.
FILES: list[tuple[str, str | bytes, str]] = [
    ("a.txt", "%0 Book\n%A Austen, Jane\n%T Emma\n", "EndNote"),
    ("a.txt", "%A Austen, Jane\n%T Emma\n", "EndNote"),
    ("a.enw", "Emma\n", "EndNote"),
    ("a.csv", "%PDF-1.7\n", "PDF"),
    ("a.csv", gzip.compress(b"title,author\n"), "gzip"),
    ("a.csv", b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR", "a picture"),
    ("a.csv", b"\xff\xd8\xff\xe0\0\x10JFIF\0", "a picture"),
    ("a.csv", b"SQLite format 3\0\x10\0", "a binary file"),
    ("a.csv", b"\x7fELF\x02\x01\x01\0\xb8\0", "a binary file"),
    ("a.csv", b"\x03\x7e\x01\x1f", "a binary file"),
    ("a.txt", "\nPMID- 27433151\nTI  - Emma\n", "PubMed"),
    ("a.xml", f"{XML}<!DOCTYPE x>\n<PubmedArticleSet></PubmedArticleSet>", "PubMed"),
    ("a.nbib", "TI", "PubMed"),
    ("a.txt", "RT Book, Whole\nSR Print\nA1 Austen, Jane\n", "RefWorks"),
    ("a.txt", "FN Clarivate\nVR 1.0\nPT J\n", "Web of Science"),
    ("a.ciw", "PT J\nAU Austen\n", "Web of Science"),
    ("a.txt", "<1. >\nTitle\n  Emma\n", "Ovid"),
    ("a.ris", "T1  - Emma\n  a novel\nAU  - Austen\n", "a list of references without the lines TY of RIS"),
    ("a.mrk", "=LDR  00000nam a2200000 a 4500\n=001  1\n", "MARC as text (MarcEdit)"),
    ("a.json", '[{"leader": "00000nam a2200000 a 4500", "fields": []}]', "MARC as JSON"),
    ("a.json", '[{"id": "x", "issued": {"date-parts": [[1815]]}}]', "CSL JSON"),
    ("a.csv", ISBNS, "a list of ISBNs"),
    ("a.txt", "ISBN 0141439580", "a list of ISBNs"),
    (
        "a.xml",
        f'{XML}<xml><records><record><source-app name="EndNote">E</source-app></record></records>',
        "EndNote XML",
    ),
    ("a.xml", '<mods:mods xmlns:mods="http://www.loc.gov/mods/v3">', "MODS"),
    ("a.mods", f"{XML}<modsCollection>\n<mods></mods></modsCollection>", "MODS"),
    ("a.xml", '<file xmlns="http://bibtexml.sf.net/">', "BibTeXML"),
    ("a.xml", f"{XML}<ONIXMessage release='3.0'>", "ONIX"),
    ("a.xml", "<b:Sources xmlns:b='x'>", "a list of sources of Word"),
    ("a.csv", "<!DOCTYPE HTML><p>title,author", "a web page (HTML)"),
    ("a.xml", f"{XML}<html lang='en'><body>", "a web page (HTML)"),
    ("a.xml", f"{XML}<feed/>", "another kind of XML"),
]
READ_FILES = [
    ("a.txt", "% A comment\n% Another\n@book{x, title = {Emma}}\n", "bibtex"),
    ("a.txt", "@comment{x}\n", "bibtex"),
    ("a.xml", f"{XML}<mods/><collection xmlns='http://www.loc.gov/MARC21/slim'><record/></collection>", "marcxml"),
    ("a.xml", "<response><marc:record><marc:leader>x</marc:leader></marc:record></response>", "marcxml"),
    ("a.txt", "TY - BOOK\nTI - Emma\nER - \n", "ris"),
    ("a.csv", "isbn\n0141439580\n0141439580\n0141439580\n", "csv"),
    ("a.csv", "0141439580,Emma\n", "csv"),
    ("a.csv", "%,title\n", "csv"),
    ("a.txt", "\ufeff\ufeffTY  - BOOK\n", "ris"),
    ("a.csv", "title,author\nCaf\ufffd,\0\x7f\x1b\n", "csv"),
    ("a.json", '{"title": "\\"leader\\": \\"00000", "isbn": "1"}\n', "jsonl"),
]


def test_a_file_of_another_kind_is_refused_by_the_name_of_its_kind() -> None:
    for name, text, kind in FILES:
        [row] = [row for row in OTHER_KINDS if row.name == kind]
        encodings = ("utf-8", "utf-8-sig", "utf-16")
        for data in [text] if isinstance(text, bytes) else map(text.encode, encodings):
            with pytest.raises(UnreadableFile) as error:
                find_format(BytesIO(data), name)
            assert str(error.value) == f"This is {kind}, which the library cannot read. {row.advice}", (name, text)
    assert {kind for _name, _text, kind in FILES} == {kind.name for kind in OTHER_KINDS}


def test_what_resembles_another_kind_is_read() -> None:
    formats = [(name, text, find_format(BytesIO(text.encode()), name).name) for name, text, _format in READ_FILES]
    assert formats == READ_FILES


def test_an_empty_file_is_refused() -> None:
    for data in (b"", b" \r\n", b"\xef\xbb\xbf", b"\0\0"):
        with pytest.raises(UnreadableFile, match=r"The file is empty\."):
            find_format(BytesIO(data), "books.mrc")
