"""Code uses the nouns of Django, REST framework and librarians. The words here were of this house alone."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[3]
PACKAGES = ("books", "webhooks", "oauth", "library_site", "tests", "benchmarks")
MODULES = [
    path
    for name in PACKAGES
    for path in sorted((ROOT / name).rglob("*.py"))
    if not {"migrations", "node_modules", "peers"} & set(path.parts) and path != Path(__file__)
]
# What is said now, by names that were to go.
NAMES = {
    "answer": "response",
    "answers": "responses",
    "Refusal": "APIError",
    "Failure": "ErrorContent",
    "Problem": "FieldError",
    "Member": "BookField",
    "MEMBERS": "FIELDS",
    "Representation": "BookEncoder",
    "BookRow": "BookValues",
    "Creator": "Issuer",
    "EarlierRecords": "SeenRecords",
    "Head": "FilePreview",
    "Slots": "BodySemaphore",
    "find_actor": "get_or_create_actor",
    "give_back": "release_operation",
    "has_given_way": "is_contention",
    "hold_doubtful": "mark_doubtful",
    "doubt_isbn": "warn_isbn",
    "doubt": "warning",
    "doubts": "warnings",
    "Decision": "Outcome",
    "find_head": "find_preview",
    "describe_head": "describe_preview",
    "refused_ids": "rejected_ids",
    "find_touched_books": "find_changed_books",
    "pass_corrections_on": "move_corrections",
    "end_made": "disable_issued",
    "announce_end": "revoke_issued",
}
# A column of the table of attempts, a field of the interface, and what a person types.
PUBLIC_NAMES = {
    "webhooks/models.py",
    "webhooks/api/v2/serializers.py",
    "webhooks/delivery/attempts.py",
    "oauth/management/commands/forget_user.py",
    "oauth/management/commands/reset_second_factor.py",
}
NAMED = re.compile(rf"\b({'|'.join(NAMES)})\b")
# Phrases of comments and docstrings.
PHRASES = re.compile(r"\b(who(ever)? asks|what becomes of|of which one must be)\b", re.IGNORECASE)


def iter_names(tree: ast.AST) -> Iterator[str]:
    """Yields the names that a module defines."""
    for node in ast.walk(tree):
        match node:
            case ast.FunctionDef() | ast.ClassDef() | ast.AsyncFunctionDef():
                yield node.name
            case ast.Name(ctx=ast.Store()):
                yield node.id
            case ast.arg():
                yield node.arg


def test_no_name_is_of_this_house_alone_and_no_sentence_needs_two_readings() -> None:
    found = []
    for path in MODULES:
        text, place = path.read_text(), str(path.relative_to(ROOT))
        if PHRASES.search(text):
            lines = [line.strip() for line in text.splitlines() if PHRASES.search(line)]
            found += [f"{place}: {line}" for line in lines if '"""' in line or line.startswith("#")]
        if NAMED.search(text) and place not in PUBLIC_NAMES:
            names = NAMES.keys() & {*iter_names(ast.parse(text))}
            found += [f"{place}: {name}, say {NAMES[name]}" for name in names]
    assert sorted(found) == []
