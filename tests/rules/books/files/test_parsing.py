"""What a record of a file says, before it is compared with the books."""

from books.files.columns.tables import guess_mapping
from books.files.formats.records import Record
from books.files.parsing import ImportRules, parse_records


def test_columns_are_guessed_by_their_names() -> None:
    columns = ["Nr.", "TITEL", "Verfasser", "Erscheinungsjahr", "Date", "ISBN-13", "isbn", "Sachgebiet"]
    assert guess_mapping(columns) == {
        "title": "TITEL",
        "author": "Verfasser",
        "year": "Erscheinungsjahr",
        "isbn": "isbn",
        "isbn_2": "ISBN-13",
        "genre": "Sachgebiet",
    }


def test_columns_with_the_isbns_of_two_books_are_doubtful() -> None:
    rules = ImportRules({"isbn": "ISBN-13", "isbn_2": "ISBN-10"})
    texts = {"0140449132": ("isbn",), "0-306-40615-2": (), "0306406153": (), "": ()}
    records = [Record(1, {"ISBN-13": "9780306406157", "ISBN-10": text}) for text in texts]
    parsed = [*parse_records(records, rules)]
    assert [record.fields for record in parsed] == [*texts.values()]
    assert parsed[0].warnings == ("ISBN-13: The column “ISBN-10” has another one, 0140449132.",)


def test_all_problems_of_a_record_are_named_together() -> None:
    mapping = {name: name for name in ("title", "year", "isbn")}
    raw = Record(7, {"title": " ", "year": "MCM", "isbn": []}, None)
    [record] = parse_records([raw], ImportRules(mapping))
    assert record.problem == ("title: It is missing. year: “MCM” is no year. isbn: It is no text.")


def test_a_column_may_tell_what_is_available() -> None:
    texts = {"false": False, "TRUE": True, " lent": False, "": None, None: None, False: False, "maybe": None}
    records = [*parse_records([Record(1, {"a": text}) for text in texts], ImportRules({"available": "a"}))]
    assert [record.values.get("available") for record in records] == [*texts.values()]
    reason = "a: It is neither true (available) nor false (lent)."
    assert [record.problem for record in records] == [*[""] * 6, reason]


def test_a_title_with_the_names_of_its_authors_is_doubtful() -> None:
    titles = {
        ("Tides : a novel / by Jo Berg ; ill. by A. Lee", "Berg, Jo"): "Tides : a novel",
        ("Tides / J. Berg ; ill. by A. Lee", "Berg, Jo"): "Tides",
        ("Tides / von J. Berg", "Jo Berg"): "Tides",
        ("Tides / jo BERG", "Berg, Jo, 1950- author; Lee, A."): "Tides",
        ("Tides / J. Berg", "Berg, J."): "Tides",
        ("Tides / Flut / Jo Berg", "Berg, Jo"): "Tides / Flut",
        (
            "Le petit prince / Der kleine Prinz / Antoine de Saint-Exupéry",
            "Saint-Exupéry, Antoine",
        ): "Le petit prince / Der kleine Prinz",
        ("Tides / Flut", "Berg, Jo"): "",
        ("Tides/Jo Berg", "Berg, Jo"): "",
        ("/ Jo Berg", "Berg, Jo"): "",
        ("Land der Berge / Berg van licht", "Vincent van Berg"): "",
        ("Hitchcock / Truffaut", "François Truffaut"): "",
        ("Black / White", "E. B. White"): "",
        ("Drive / Will", "Self, Will"): "",
        ("Poemas / Poemes de la terra", "Garcilaso de la Vega"): "",
        ("Macbeth / Ein Drama", "Drama"): "",
        ("Heimat / Von der Erde", "Hans von der Heide"): "",
    }
    mapping = {"title": "T", "author": "A"}
    for (title, author), mended in titles.items():
        raw = Record(1, {"T": title, "A": author})
        warnings = (f"T: The text is “{title}”, which may mean “{mended}”.",) if mended else ()
        for rules in (ImportRules(mapping), ImportRules(mapping, format="ris")):
            [record] = parse_records([raw], rules)
            # So a second import finds the book.
            assert record.values["title"] == title
            assert [text.partition(": ")[2] for text in record.warnings] == [text[3:] for text in warnings]
        for corrections in ({1: {"title": title}}, {}):
            rules = ImportRules(mapping, is_exact=not corrections)
            [record] = parse_records([raw], rules, corrections)
            assert (record.values["title"], record.warnings) == (title, ())


def test_an_id_beyond_64_bits_is_no_id() -> None:
    numbers = [2**63 - 1, 1 - 2**63, 2**63, -(2**63), 10**30]
    records = parse_records([Record(1, {"id": str(number)}) for number in numbers], ImportRules({"id": "id"}, "id"))
    assert [record.problem for record in records] == ["", "", *["id: It is no ID of a book."] * 3]


def test_an_issn_is_no_isbn() -> None:
    expected = {
        "": True,
        " ": True,
        "0317-8471": True,
        "ISSN: 0317-8471": True,
        "03178471; 1050-124X": True,
        "0317-8472": False,
        "0317-8471 LOC 17": False,
        "LOC 17": False,
        "()": False,
        "0317-8471 " * 21: False,
        "978-0-14-143951-8": False,
    }
    records = [Record(number, {"isbn": isbn}, None) for number, isbn in enumerate(expected)]
    found = parse_records(records, ImportRules({"isbn": "isbn"}, leave_without_isbn=True))
    assert [record.is_left_out for record in found] == [*expected.values()]
    assert not any(record.is_left_out for record in parse_records(records, ImportRules({"isbn": "isbn"})))


def test_the_year_is_read_from_the_column_that_says_so_most_plainly() -> None:
    files = {
        ("Date", "Year of publication"): "Year of publication",
        ("Date", "Date added", "Copyright"): "Copyright",
        ("First published", "Date"): "First published",
        ("Year", "Publication year"): "Publication year",
        ("First published", "Year"): "Year",
        ("Date",): "Date",
        ("Date added", "Date acquired", "Entry date"): None,
    }
    assert {columns: guess_mapping(columns).get("year") for columns in files} == files
    assert not any("year_2" in guess_mapping(columns) for columns in files)
