"""Which titles and authors belong to possible duplicates."""

from books.book.match_keys import build_match_key, build_work, list_match_keys
from books.book.texts import fold_loosely

DARKNESS = ("The Left Hand of Darkness", "Ursula K. Le Guin")
SAME = [
    (DARKNESS, ("The Left Hand of Darkness : a novel", "Le Guin, Ursula K.")),
    (DARKNESS, ("The left hand of darkness: A Novel /", "LE GUIN, URSULA K")),
    (DARKNESS, ("THE LEFT HAND OF DARKNESS.", "Guin Le Ursula-K.")),
    (("The Hobbit", "J.R.R. Tolkien"), ("The hobbit ;", "Tolkien, J. R. R.")),
    (("É" * 150, "Ö" * 200), ("é" * 150, "ö" * 200)),
    (("Werke: Band 2", "Goethe"), ("Werke : 2. Band", "Goethe")),
    ((": x", "A"), (": x", "A")),
    (("History of quays: Volume II", "Berg"), ("History of quays: vol. 2", "Berg")),
    (("The sailor’s boy", "Sean O’Brien"), ("The sailor's boy", "O'Brien, Sean")),
    (("Half‐light", "Jean-Paul Roux"), ("Half-light", "Roux, Jean‐Paul")),
    (("“Emma”", "Lee"), ('"Emma"', "Lee")),
    (("Łódź: Band fünf", "Ørsted"), ("Lodz: Bd. 5", "Orsted")),
]
# The index finds these by their usual writings.
OTHER_TYPOGRAPHY = [
    (("Tides & quays", "Lee, A. & Berg, B."), ("Tides and quays", "B. Berg; A. Lee")),
    (("The Net", "Lee"), ("Net, The", "Lee")),
    (("Der Zauberhafen", "Lee"), ("Zauberhafen, Der: ein Roman", "Lee")),
]
OTHER_LETTERS = [(("Café Zürich", "Müller"), ("Cafe Zuerich", "Mueller"))]
DIFFERENT = [
    (DARKNESS, ("The Left Hand", "Ursula K. Le Guin")),
    (DARKNESS, ("The Left Hand of Darkness", "Ursula Le Guin")),
    (("Emma", "Amy Jane"), ("Emma", "May Jane")),
    (("Emma", "Jane Jane Austen"), ("Emma", "Jane Austen Austen")),
    (("É" * 150, "Ö"), ("é" * 151, "Ö")),
    (("Werke: Band 1", "Goethe"), ("Werke: Band 2", "Goethe")),
    ((": x", "A"), (": y", "A")),
    (("History of quays: Volume II", "Berg"), ("History of quays: Volume I", "Berg")),
    (("Readings: Volume two", "Lee"), ("Readings: Volume one", "Lee")),
    (("Atlas: South", "Lee"), ("Atlas: North", "Lee")),
    (("Atlas: der Norden", "Lee"), ("Atlas: der Süden", "Lee")),
    (("Werke: zweiter Band", "Goethe"), ("Werke: 1. Band", "Goethe")),
    (("The", "Lee"), ("A", "Lee")),
]


def are_same(*books: tuple[str, str]) -> bool:
    works = {build_work(*book) for book in books}
    return len(works) == 1


def test_a_duplicate_has_the_same_title_up_to_its_subtitle_and_the_same_words_of_the_author() -> None:
    assert [pair for pair in SAME + OTHER_TYPOGRAPHY + OTHER_LETTERS if not are_same(*pair)] == []
    assert [pair for pair in DIFFERENT if are_same(*pair)] == []


def test_an_index_finds_all_duplicates() -> None:
    assert [pair for pair in SAME if len({build_match_key(*map(fold_loosely, book)) for book in pair}) > 1] == []
    for first, second in OTHER_TYPOGRAPHY:
        assert build_match_key(*map(fold_loosely, first)) in list_match_keys(*map(fold_loosely, second))
        assert build_match_key(*map(fold_loosely, second)) in list_match_keys(*map(fold_loosely, first))
