"""Runs a Python program with the variables of a file: `python -m library_site.environment_file FILE PROGRAM …`.

The file has the format of systemd's `EnvironmentFile=` (systemd.exec(5)). Unlike in a shell, nothing in it is executed:
`&`, `$`, `;` and spaces are parts of a value.
"""

import os
import re
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import NoReturn

# A quote that is not closed extends to the end of the file.
SINGLE_QUOTED = r"'([^']*)'?"
DOUBLE_QUOTED = r'"((?:[^"\\]|\\.)*)\\?"?'
QUOTED = re.compile(rf"{SINGLE_QUOTED}|{DOUBLE_QUOTED}", re.DOTALL)
ESCAPE = re.compile(r"\\(.|\Z)", re.DOTALL)
ITEM = re.compile(
    r"[ \t\n\r]*(?:"
    r"[#;](?:[^\n\r\\]|\\[^\n\r])*(?P<continued>\\[\n\r])?"
    r"|(?P<name>[^ \t\n\r#;][^\n\r=]*)="
    # Quotes have a meaning only at the beginning of a value.
    rf"(?P<quoted>(?:[ \t]*(?:{SINGLE_QUOTED}|{DOUBLE_QUOTED}))*)[ \t]*"
    r"(?P<bare>(?:[^\n\r\\]|\\(?:.|\Z))*?)[ \t]*(?=[\n\r]|\Z)"
    # Other lines are comments, too.
    r"|[^\n\r]+)",
    re.DOTALL,
)
NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


class UnreadableVariables(Exception):
    """The message tells why systemd would reject the file, or would read something else than the author meant."""


def read_variables(path: Path) -> dict[str, str]:
    """Reads a file of variables. Raises UnreadableVariables, OSError."""
    try:
        text = path.read_bytes().decode()
    except UnicodeDecodeError as error:
        raise UnreadableVariables("it is not UTF-8") from error
    return parse_variables(text)


def parse_variables(text: str) -> dict[str, str]:
    """Returns values by name. The last value of a name counts. Raises UnreadableVariables."""
    if "\0" in text:
        raise UnreadableVariables("it has a NUL")
    variables = {}
    for item in ITEM.finditer(text):
        if item["continued"]:
            # Before systemd 254, such a comment continues in the next line; since then it does not.
            raise UnreadableVariables(
                f"the comment at {find_line(item, 'continued')} ends with a backslash; remove that"
            )
        if item["name"] is None:
            continue
        name = item["name"].rstrip(" \t")
        if not NAME.fullmatch(name):
            raise UnreadableVariables(f"at {find_line(item, 'name')}, systemd ignores {name!r}, which is no name")
        variables[name] = unquote(item["quoted"]) + ESCAPE.sub(unescape_bare, item["bare"])
    return variables


def find_line(item: re.Match[str], group: str) -> str:
    return f"line {item.string.count(chr(10), 0, item.start(group)) + 1}"


def unquote(text: str) -> str:
    return "".join(single or ESCAPE.sub(unescape_double, double) for single, double in QUOTED.findall(text))


def unescape_bare(match: re.Match[str]) -> str:
    """Removes the backslash before a character. At the end of a line, it removes the line end too."""
    return "" if match[1] in "\n\r" else match[1]


def unescape_double(match: re.Match[str]) -> str:
    """Removes the backslash before a character with a meaning in double quotes. Elsewhere, the backslash stays."""
    if match[1] == "\n":
        return ""
    return match[1] if match[1] in '"\\`$' else match[0]


def run(command: list[str], variables: Mapping[str, str]) -> NoReturn:
    """Replaces this process with Python and the command. The file's variables override the caller's."""
    os.execve(sys.executable, [sys.executable, *command], {**os.environ, **variables})


def main(file: str, *command: str) -> NoReturn:
    try:
        variables = read_variables(Path(file))
    except OSError as error:
        sys.exit(f"{file}: {error.strerror}.")
    except UnreadableVariables as error:
        sys.exit(f"{file}: {error}.")
    run([*command], variables)


if __name__ == "__main__":
    main(*sys.argv[1:])
