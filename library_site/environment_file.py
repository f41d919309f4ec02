"""Runs a program of Python with the variables of a file: `python -m library_site.environment_file FILE PROGRAM …`.

The file is read as systemd reads an `EnvironmentFile=` (systemd.exec(5)). Nothing in it is run, as a shell would do:
`&`, `$`, `;` and spaces are parts of a value.
"""

import os
import re
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import NoReturn

# A quote that is never closed goes on to the end of the file.
SINGLE_QUOTED = r"'([^']*)'?"
DOUBLE_QUOTED = r'"((?:[^"\\]|\\.)*)\\?"?'
QUOTED = re.compile(rf"{SINGLE_QUOTED}|{DOUBLE_QUOTED}", re.DOTALL)
ESCAPE = re.compile(r"\\(.|\Z)", re.DOTALL)
ITEM = re.compile(
    r"[ \t\n\r]*(?:"
    r"[#;](?:[^\n\r\\]|\\[^\n\r])*(?P<continued>\\[\n\r])?"
    r"|(?P<name>[^ \t\n\r#;][^\n\r=]*)="
    # Quotes have a meaning before everything else alone.
    rf"(?P<quoted>(?:[ \t]*(?:{SINGLE_QUOTED}|{DOUBLE_QUOTED}))*)[ \t]*"
    r"(?P<bare>(?:[^\n\r\\]|\\(?:.|\Z))*?)[ \t]*(?=[\n\r]|\Z)"
    # Other lines are comments, too.
    r"|[^\n\r]+)",
    re.DOTALL,
)
NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


class UnreadableFile(Exception):
    """The message says why systemd would not read the file, or not as it is meant."""


def read_variables(path: Path) -> dict[str, str]:
    """Raises UnreadableFile, OSError."""
    try:
        text = path.read_bytes().decode()
    except UnicodeDecodeError as error:
        raise UnreadableFile("it is not UTF-8") from error
    return parse_variables(text)


def parse_variables(text: str) -> dict[str, str]:
    """Returns the values by name, of which the last one counts. Raises UnreadableFile."""
    if "\0" in text:
        raise UnreadableFile("it has a NUL")
    variables = {}
    for item in ITEM.finditer(text):
        if item["continued"]:
            # It goes on in the next line before systemd 254, and no longer in later ones.
            raise UnreadableFile(f"the comment at {find_line(item, 'continued')} ends with a backslash; remove that")
        if item["name"] is None:
            continue
        name = item["name"].rstrip(" \t")
        if not NAME.fullmatch(name):
            raise UnreadableFile(f"at {find_line(item, 'name')}, systemd ignores {name!r}, which is no name")
        variables[name] = unquote(item["quoted"]) + ESCAPE.sub(unescape_bare, item["bare"])
    return variables


def find_line(item: re.Match[str], group: str) -> str:
    return f"line {item.string.count(chr(10), 0, item.start(group)) + 1}"


def unquote(text: str) -> str:
    return "".join(single or ESCAPE.sub(unescape_double, double) for single, double in QUOTED.findall(text))


def unescape_bare(match: re.Match[str]) -> str:
    """A backslash keeps any character, but joins two lines."""
    return "" if match[1] in "\n\r" else match[1]


def unescape_double(match: re.Match[str]) -> str:
    """Between double quotes it keeps those that have a meaning there. Before others it is itself one."""
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
    except UnreadableFile as error:
        sys.exit(f"{file}: {error}.")
    run([*command], variables)


if __name__ == "__main__":
    main(*sys.argv[1:])
