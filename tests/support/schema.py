"""Describes the tables of a database, so that two can be compared."""

import re
from typing import Any

from tests.support.server import is_sqlite
from tests.support.sql import fetch_all

DESCRIBE_POSTGRESQL = """
    SELECT 'column', attrelid::regclass::text, attnum::text, attname::text, format_type(atttypid, atttypmod),
        concat_ws(' ', attcollation::regcollation, attnotnull, attidentity, pg_get_expr(adbin, adrelid))
    FROM pg_class JOIN pg_attribute ON attrelid = pg_class.oid
    LEFT JOIN pg_attrdef ON adrelid = attrelid AND adnum = attnum
    WHERE relkind = 'r' AND relnamespace = 'public'::regnamespace AND attnum > 0
    UNION ALL
    SELECT 'constraint', conrelid::regclass::text, conname, pg_get_constraintdef(oid), convalidated::text, ''
    FROM pg_constraint WHERE connamespace = 'public'::regnamespace
    UNION ALL
    SELECT 'index', indrelid::regclass::text, '', pg_get_indexdef(indexrelid), indisvalid::text, ''
    FROM pg_index WHERE indrelid::regclass::text !~ '[.]'
    UNION ALL
    SELECT 'sequence', seqrelid::regclass::text, seqtypid::regtype::text, seqstart::text, '', '' FROM pg_sequence
    UNION ALL
    SELECT 'trigger', tgrelid::regclass::text, pg_get_triggerdef(oid), '', '', '' FROM pg_trigger WHERE NOT tgisinternal
    UNION ALL
    SELECT 'extension', extname, '', '', '', '' FROM pg_extension
"""
DESCRIBE_SQLITE = "SELECT type, name, tbl_name, sql FROM sqlite_master WHERE sql IS NOT NULL"
# What SQLite reads as the same: quotes, parentheses, and that a column may be null.
NOISE = re.compile(r'["()]|(?<!NOT)(?<!IS) NULL\b|\s(?=\s)')
# Libraries that began before the migrations were squashed lack this check.
NEW_CHECK = "parameters text CHECK JSON_VALIDparameters OR parameters IS NULL"


def describe_schema(url: str) -> list[tuple[Any, ...]]:
    if not is_sqlite():
        return sorted(fetch_all(url, DESCRIBE_POSTGRESQL))
    rows = fetch_all(url, DESCRIBE_SQLITE)
    return sorted((*names, normalize(sql)) for *names, sql in rows)


def normalize(sql: str) -> str:
    return NOISE.sub("", sql.replace("\n", " ")).replace(NEW_CHECK, "parameters text").strip()
