"""Converts between text and TeX as BibTeX files have it. What pylatexenc does not know stays as it is, and is named."""

import re
import unicodedata
from functools import lru_cache, partial

from pylatexenc.latex2text import LatexNodes2Text, get_default_latex_context_db

BLANKS = " \t\r\n"
# Commands that pylatexenc lacks, or reads as something else.
COMMANDS = (
    "textbackslash=\\ textbraceleft={ textbraceright=} textasciitilde=~ textasciicircum=^ textbar=| textless=<"
    " textgreater=> S=§ textsection=§ P=¶ textparagraph=¶ ddag=‡ pounds=£ textsterling=£ euro=€ copyright=©"
    " degree=° slash=/ SS=ẞ textperiodcentered=· textordmasculine=º glqq=„ grqq=“ glq=‚ grq=‘ flqq=« frqq=» flq=‹ frq=›"
    " guillemetleft=« guillemetright=» quotedblbase=„ quotesinglbase=‚ LaTeX=LaTeX TeX=TeX BibTeX=BibTeX"
)
SYMBOLS = {
    **dict(pair.split("=") for pair in COMMANDS.split()),
    **{sign: sign for sign in "%&$#_{}"},
    **dict.fromkeys([",", ";", ":", "\\", " ", "\n", "newline", "quad", "space"], " "),
    **dict.fromkeys(["-", "/", "!", "@", "protect", "relax", "ignorespaces"], ""),
}
# They change how a text looks, and not what it says.
STYLES = (
    r"(?:text(?:it|bf|sc|sl|tt|rm|sf|md|up|normal|superscript|subscript)?|bf(?:series)?|em|emph|underline|mbox|hbox"
    r"|(?:it|sc|sl|tt|rm|sf|up|md)(?:shape|family|series)?|mkbib(?:emph|quote|bold|italic)|normalfont|small|large|url)"
)
GROUP = r"\{(?:[^{}]|\{(?:[^{}]|\{[^{}]{0,50}+\}){0,50}+\}){0,200}+\}"
SIGN_ACCENTS, LETTER_ACCENTS = "`'^~=.\"", "urHvdckb"
TEX_PATTERN = re.compile(
    rf"""
    \\char"(?P<code>[0-9A-F]{{1,6}})
    | \\(?:{STYLES}(?![A-Za-z])|href[ ]*{GROUP})[ ]*
    | (?P<command>
        \\(?:[{SIGN_ACCENTS}]|[{LETTER_ACCENTS}](?![A-Za-z]))[ ]*(?:{GROUP}|\\[A-Za-z]+[ ]?|[^\W\d_])
        | \\[A-Za-z]+(?:(?:[ ]*{GROUP})+|[ ]+)?
        | \\[^A-Za-z]
        | \$(?=[^$]*[\\^_])[^$]{{1,200}}\$
      )
    | (?P<blanks>(?![ ][^ \t\r\n])[ \t\r\n]+|~)
    | (?P<ligature>---?|``|''|[?!]`)
    | [{{}}]
    """,
    re.VERBOSE,
)
LIGATURES = {"--": "–", "---": "—", "``": "“", "''": "”", "?`": "¿", "!`": "¡"}
SYMBOL_PATTERN = re.compile(r"\\([A-Za-z]+|[^A-Za-z])[ ]*(?:\{\})?")
NAME_PATTERN = re.compile(r"\\([A-Za-z]+|[^A-Za-z])")
# A text that stands for a command: no pattern, placeholder or date.
CHARACTERS = re.compile("[^%<]{1,7}")
# An accent without its letter.
LONELY_ACCENT = re.compile("(?:^|\\s)[\u0300-\u036f]")
ESCAPES = {sign: rf"\{sign}" for sign in "%&$#_"} | {
    text: f"{{\\{name}}}"
    for name, text in SYMBOLS.items()
    if name.startswith(("textb", "textasc")) and text in "\\{}~^"
}
# Control characters, spaces that TeX or another program would drop, and signs that would join the one before them.
UNSAFE_CHARACTERS = re.compile(r"[\\{}~^%&$#_\x00-\x1f\x7f-\x9f]|(?! )\s|^ | \Z|(?<= ) |(?<=-)-|(?<=[`?!])`|(?<=')'")


def decode_tex(text: str) -> tuple[str, list[str]]:
    """Returns the text, and the commands in it that are not known."""
    unknown: list[str] = []
    return TEX_PATTERN.sub(partial(decode_token, unknown), text.strip(BLANKS)), unknown


def decode_token(unknown: list[str], match: "re.Match[str]") -> str:
    if match["code"]:
        code_point = int(match["code"], 16)
        return chr(code_point) if code_point < 0xD800 or 0xE000 <= code_point <= 0x10FFFF else match[0]
    if command := match["command"]:
        text = decode_command(command)
        if text is None:
            unknown.append(command.strip(BLANKS))
        return command if text is None else text
    return LIGATURES[match["ligature"]] if match["ligature"] else " " if match["blanks"] else ""


# Cached because the library needs a millisecond, and a file has few commands and many of each.
@lru_cache(maxsize=4096)
def decode_command(command: str) -> str | None:
    """Returns the text of a command with its arguments, None if it is not known."""
    symbol = SYMBOL_PATTERN.fullmatch(command)
    if symbol and symbol[1] in SYMBOLS:
        return SYMBOLS[symbol[1]]
    converter = get_converter()
    if not all(is_character(name, converter) for name in NAME_PATTERN.findall(command)):
        return None
    text = unicodedata.normalize("NFC", converter.latex_to_text(command))
    return None if not text.strip() or LONELY_ACCENT.search(text) else text


def is_character(name: str, converter: LatexNodes2Text) -> bool:
    """Whether the command is a character or an accent. The library fails on some of the others."""
    text = getattr(converter.latex_context.get_macro_spec(name), "simplify_repl", None)
    return name in SIGN_ACCENTS + LETTER_ACCENTS or (isinstance(text, str) and CHARACTERS.fullmatch(text) is not None)


@lru_cache(maxsize=1)
def get_converter() -> LatexNodes2Text:
    return LatexNodes2Text(math_mode="text", latex_context=get_default_latex_context_db())


def encode_tex(text: str) -> str:
    return UNSAFE_CHARACTERS.sub(encode_character, text)


def encode_character(match: "re.Match[str]") -> str:
    return ESCAPES.get(match[0]) or f'{{\\char"{ord(match[0]):X}}}'
