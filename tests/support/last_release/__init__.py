"""The database of the last release before the migrations were squashed, with a row in each table.

The statements make the tables of the library's own apps as its migrations left them, column by column.
"""

from contextlib import closing
from pathlib import Path
from typing import Any

from tests.support.server import is_sqlite
from tests.support.sql import connect, fetch_all

FOLDER = Path(__file__).parent
# Those of other apps that ours refer to.
OTHER_TABLES = ("auth_user", "oauth2_provider_application")
LIST_TABLES = {
    "postgresql": "SELECT relname FROM pg_class WHERE relkind = 'r' AND relname ~ '^(books|oauth|webhooks)_'",
    # FTS5 has tables of its own beside the index.
    "sqlite": """
        SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT GLOB 'books_trigrams_*_*'
        AND name NOT IN ('books_trigrams_data', 'books_trigrams_idx', 'books_trigrams_docsize', 'books_trigrams_config')
        AND (name GLOB 'books_*' OR name GLOB 'oauth_*' OR name GLOB 'webhooks_*')
    """,
}
LIST_COLUMNS = {
    "postgresql": "SELECT column_name, data_type FROM information_schema.columns WHERE table_name = '{}'",
    "sqlite": "SELECT name, type FROM pragma_table_info('{}')",
}
FORGET = "DELETE FROM django_migrations WHERE app IN ('books', 'oauth', 'webhooks')"


def restore_last_release(url: str) -> None:
    """Replaces the tables of our apps in the database of a new library."""
    with closing(connect(url)) as database, database:
        for table in list_own_tables(url):
            database.execute(f"DROP TABLE {table} {'' if is_sqlite() else 'CASCADE'}")
        for statement in (FORGET, *read_statements()):
            database.execute(statement)
    with closing(connect(url)) as database, database:
        for table in (*OTHER_TABLES, *list_own_tables(url)):
            database.execute(f"DELETE FROM {table}")  # noqa: S608  # our own tables
            database.execute(build_row(url, table))


def read_statements() -> list[str]:
    """Returns the statements, one a line."""
    return (FOLDER / f"{get_vendor()}.sql").read_text().splitlines()


def list_own_tables(url: str) -> list[str]:
    return sorted(name for (name,) in fetch_all(url, LIST_TABLES[get_vendor()]))


def get_vendor() -> str:
    return "sqlite" if is_sqlite() else "postgresql"


def list_columns(url: str, table: str) -> list[tuple[str, str]]:
    """Returns names and types."""
    return [(name, kind) for name, kind in fetch_all(url, LIST_COLUMNS[get_vendor()].format(table))]


def build_row(url: str, table: str) -> str:
    """Returns a statement. All keys of a type are the same, so that rows refer to each other."""
    columns = list_columns(url, table)
    names, values = join_names(columns), ", ".join(choose_value(kind) for _, kind in columns)
    return f"INSERT INTO {table} ({names}) VALUES ({values})"  # noqa: S608  # our own tables


def choose_value(kind: str) -> str:
    """Returns a literal that the type of column takes; most take a one."""
    if kind in ("uuid", "char(32)"):
        return f"'{1:032x}'"
    return "'2026-11-23 12:00:00'" if "time" in kind else "'1'"


def build_queries(url: str) -> dict[str, str]:
    """Returns what reads all rows of each table: its columns of now, and none that is added later."""
    return {table: f"SELECT {join_names(list_columns(url, table))} FROM {table}" for table in list_own_tables(url)}  # noqa: S608


def join_names(columns: list[tuple[str, str]]) -> str:
    return ", ".join(f'"{name}"' for name, _ in columns)


def read_rows(url: str, queries: dict[str, str]) -> dict[str, list[tuple[Any, ...]]]:
    return {table: fetch_all(url, query) for table, query in queries.items()}
