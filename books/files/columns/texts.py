"""Mends the texts of other programs: marks of nothing, white space, entities, and letters of a wrong encoding."""

import html
import re

from django.utils.translation import gettext as _

from books.book.fields import MAX_LENGTHS
from books.files.formats.record_kinds import is_only_medium, warn_kind

# What programs and people write where they know nothing, folded.
NOTHING = frozenset(
    "null (null) <null> none nan nil undefined n/a #n/a n.a. \\n - -- – — ? #ref! #value! #name? #null! #num! #div/0!"
    " [null] <na> nat n.d. s.n. [s.n.] k.a. o.a. tbd unknown unbekannt [] {}".split()
)
# What people also write there, though it may be a value.
PERHAPS_NOTHING = re.compile(
    r"0+|xx+|[-‐-―_.,;:/?\"'“”„‘’]+|n/n|ohne|keine[rs]?|not known"
    r"|(?:ohne|keine?|unknown|no|unbekannte[rs]?) (?:autor|author|angabe|titel|title)",
    re.IGNORECASE,
)
# What people write for the name or the genre in the row above. `S.O.` is a person, and “Ditto” a title.
DITTO = re.compile(r"(?i:ditto|dito|dto\.?|idem)|do\.|id\.|s\. ?o\.")
ENTITY = re.compile(r"&(?:#[0-9]{1,7}|#[xX][0-9A-Fa-f]{1,6}|[A-Za-z][A-Za-z0-9]{1,31});")
MARKUP = re.compile(
    r"</?(?:[abipsu]|br|em|strong|su[bp]|scp?|small|span|div|font)(?:\s[^<>]{0,200})?/?>", re.IGNORECASE
)
# A replacement character, control characters, which nobody types, and a question mark within a word.
LOST_CHARACTERS = re.compile(r"[\ufffd\x00-\x08\x0e-\x1b\x7f-\x84\x86-\x9f]|(?<=[^\W\d_])\?(?=[^\W\d_])")
# Characters of programs: in JSON and Python, in addresses, in mails.
ESCAPED = re.compile(r"\\(?:u[0-9a-fA-F]{4}|x[0-9a-fA-F]{2}|[nrt](?![a-z]))|([%=])[C-F][0-9A-F]\1[89AB][0-9A-F]")
# A text without them is as it was.
SUSPICIOUS = re.compile(r"[&<\\?%=@{\[\x00-\x08\x0e-\x1b\x7f-\U0010ffff]")
# A medium, as old catalogues write it after a title: `[sound recording]`.
MEDIUM = re.compile(r"(?<=\S )\[[^\[\]]{2,64}\](?=\.?\s*$| [:=/])")
# What letters look like in a wrong encoding of 8 bits. A search is fast if it begins with a set of characters.
ACCENT, SMALL, CYRILLIC = "([À-ÖØ-öø-ÿ])", "[a-zß-öø-ÿĀ-ſ]", "\u0400-\u04ff"
GERMAN, SPANISH, FRENCH = "[äöüß]", "[áéíóúñü]", "[àâçèéêëîïôùûü]"
OTHER_LETTERS = [
    re.compile(pattern)
    for pattern in (
        # Different ones with accents in a row, but for those of one alphabet.
        rf"{ACCENT}(?!\1){ACCENT}(?!\2){ACCENT}(?!\3){ACCENT}(?i:(?<!{GERMAN}{{4}})(?<!{SPANISH}{{4}})(?<!{FRENCH}{{4}}))",
        # A sign within a word, or before a small letter; such as are also in formulas and prices, only beside two.
        r"[¡-¦¨¬¯¸¼-¿‚„†‡‰›˜ˆƒ№](?<=[^\W\d_].)(?=[^\W\d_])",
        rf"[¤¦¨¬¯¶¸ƒ](?<!\w.)(?:(?<=[¦¯])[^\W\d_]|{SMALL})",
        rf"[©®±¹³](?:(?<=[^\W\d_].){SMALL}{{2}}|(?<=[^\W\d_]{{2}}.){SMALL})",
        rf"[£³¼¾](?<!\w.){SMALL}{{2}}",
        # A long Cyrillic word that goes on in capitals, or one of two alphabets, but for `iФак` and `Духless`.
        r"[а-яё](?<!\w.)[А-ЯЁ]{4}",
        rf"[{CYRILLIC}](?:(?<!\w.)[a-z]{{2}}|[a-z]+[{CYRILLIC}]|(?<=[A-Za-z].)[{CYRILLIC}]*[a-z]|(?<=[a-z]{{2}}.)(?!\w))",
        # A Hebrew word that begins with a final letter or a point.
        r"[ךםןףץ\u05b0-\u05c2](?<![\w\u0591-\u05c7].)(?:(?<=[\u05b0-\u05c2])|\w)",
    )
]
# Around a part that sorting ignores (ISO 6630, and as some catalogues write it). A search is fast if each alternative
# begins with a character.
SORTING_MARKS = re.compile("\x88|\x89|\x98|\x9c|¬|<<(?=[^<>]*>>)|>>(?<!>>>)(?!>)")
# A full stop that belongs to the text: after an initial or an abbreviation, and several dots.
OWN_STOP = re.compile(
    r"(?:^|[\s.(])(?:[A-Z]|Inc|Jr|Sr|[Ee]tc|Mrs?|Ms|Mmes?|Mlles?|Dr|Drs|St|Ste|Co|Cos|Ltd|Corp|Bros|Cie|Prof|Rev|Hon|Esq|Gen"
    r"|Col|Capt|Lt|Sgt|Ph|[Ee]ds?|[Vv]ols?|[Nn]os?|[Pp]ts?|Hrsg|usw|bzw|[Aa]l|[Cc]a|[Nn]r|Bde?|Dept|Assn|Assoc|Univ|Soc|Inst"
    r"|Mt|Ave|vs)\.$|\.\.$"
)
LONGEST_STOP = 8
# Such marks that are also other signs: `Der @Hafen`, `{The} quay`.
LOOSE_MARKS = re.compile(rf"{SORTING_MARKS.pattern}|(?<!\S)@(?=[^\W\d_]{{2}})|^\{{(?=\w+\}} )|(?<=\w)\}}(?= )")
# The characters of Windows-1252 or of ISO 8859-1, as which the bytes of UTF-8 after the first of a letter look.
WINDOWS_1252 = [bytes([byte]).decode("cp1252", "ignore") or chr(byte) for byte in range(256)]
BYTES = {**{chr(byte): byte for byte in range(256)}, **{sign: byte for byte, sign in enumerate(WINDOWS_1252)}}
NEXT = f"[\x80-\x9f{re.escape(''.join(WINDOWS_1252[0x80:0xC0]))}]"
# Rarer first letters count only in a row: a text may end with “É…”.
MISREAD_UTF_8 = re.compile(
    f"(?:[ÂÃÄÅÎÏÐÑ×ØÙ]{NEXT}|â{NEXT}{{2}}|ð{NEXT}{{3}}|(?:[Â-ß]{NEXT}){{3,}}|(?:[à-ï]{NEXT}{{2}}){{2,}})+"
)
# A letter beyond ASCII has at least two bytes in UTF-8, so two characters where it is misread.
NEIGHBOURS = re.compile(r"[^\x00-\x7f]{2}")
# Other encodings that UTF-8 is misread in, and how many letters tell: in the first two, what looks so is no word.
OTHER_ENCODINGS = {"cp437": 1, "mac-roman": 1, "cp1251": 2, "cp1250": 2}


def is_nothing(text: str) -> bool:
    """Whether a text means that there is no value."""
    return len(text) < 16 and text.strip().lower() in NOTHING


def strip_stop(text: str) -> str:
    """Returns the text without the full stop that ends it as a sentence."""
    return text[:-1] if text.endswith(".") and not OWN_STOP.search(text[-LONGEST_STOP:]) else text


def mend_text(text: str) -> tuple[str, str]:
    """Returns the text as it probably was in another program, and a warning if it is not certain."""
    if is_nothing(text) or PERHAPS_NOTHING.fullmatch(text):
        return text, _("It may mean that there is none.")
    if not SUSPICIOUS.search(text):
        return text, ""
    mended = mend_encoding(MARKUP.sub("", ENTITY.sub(lambda match: html.unescape(match[0]), text)))
    mended = LOOSE_MARKS.sub("", mended) if mended == text else mended
    if mended != text:
        return mended, _("The text is “%(text)s”, which may mean “%(mended)s”.") % {"text": text, "mended": mended}
    if match := ESCAPED.search(text):
        return text, _("It has “%(sign)s”, which may stand for another character.") % {"sign": match[0]}
    if not text.isascii() and any(pattern.search(text) for pattern in OTHER_LETTERS):
        return text, _("It may have letters of another encoding.")
    if medium := next(filter(is_only_medium, MEDIUM.findall(text[: MAX_LENGTHS["title"]])), ""):
        return text, warn_kind(medium)
    if match := LOST_CHARACTERS.search(text):
        sentence = _("It has the character U+%(number)s, where another was lost.")
        return text, sentence % {"number": f"{ord(match[0]):04X}"}
    return text, ""


def mend_encoding(text: str) -> str:
    if not NEIGHBOURS.search(text):
        return text
    mended = MISREAD_UTF_8.sub(lambda match: decode_misread(match[0]), text)
    if mended != text and decode_misread(text) == mended:
        return mended
    for name, letters in OTHER_ENCODINGS.items():
        try:
            decoded = text.encode(name).decode()
        except UnicodeError:
            continue
        if not decoded.isascii() and len(text) - len(decoded) >= letters:
            return decoded
    return mended


def decode_misread(text: str) -> str:
    try:
        return bytes(BYTES[character] for character in text).decode()
    except (KeyError, UnicodeDecodeError):
        return text
