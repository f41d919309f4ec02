"""The releases: which one a database is of, and what `deploy` says of it and refuses."""

import os
import re
from pathlib import Path

import pytest
from django.core.management import CommandError
from django.db.migrations.loader import MigrationLoader

from library_site.db.migration_state import list_migrations
from library_site.deployment.releases import RELEASES, VERSION, find_release
from library_site.management.commands.deploy import describe_upgrade, require_no_later_release
from tests.support.server import run_command

CHANGELOG = Path(__file__).parents[3] / "CHANGELOG.md"
APPS = RELEASES[-1].last_migrations.keys()
# As in a database: by what each migration replaces, and by its own name.
ALL = {key for key in list_migrations() if key[0] in APPS}
REPLACED = set().union(*(rows for key, rows in list_migrations().items() if key in ALL and rows != {key}))


def test_the_newest_release_has_all_migrations() -> None:
    leaves = MigrationLoader(None).graph.leaf_nodes()
    assert {key for key in leaves if key[0] in APPS} == set(RELEASES[-1].last_migrations.items())


@pytest.mark.parametrize(
    ("applied", "version", "sentence"),
    [
        (ALL | REPLACED, VERSION, f"Library API {VERSION}, whose tables the database has."),
        (REPLACED, "1.0.0", f"From Library API 1.0.0 to {VERSION}. CHANGELOG.md says what to do for it."),
        (
            REPLACED | {("books", "0024_operations_by_actor")},
            "1.0.0",
            f"From Library API 1.0.0 to {VERSION}. CHANGELOG.md says what to do for it.",
        ),
        (
            REPLACED - {("books", "0023_operation_results")},
            None,
            f"Library API {VERSION}, on a database from before 1.0.0.",
        ),
        (set(), None, f"Library API {VERSION}, on a new database."),
    ],
)
def test_a_database_is_of_the_newest_release_whose_migrations_it_has(
    applied: set[tuple[str, str]], version: str | None, sentence: str
) -> None:
    release = find_release(applied)
    assert (release and release.version, describe_upgrade(applied)) == (version, sentence)


def test_a_deployment_refuses_the_tables_of_a_later_release() -> None:
    # Those of other programs in the database are none of ours.
    require_no_later_release(ALL | REPLACED | {("elsewhere", "0001_initial")})
    with pytest.raises(CommandError, match=r"webhooks\.0999_later is not in"):
        require_no_later_release(ALL | {("webhooks", "0999_later")})


def test_the_changelog_has_each_release() -> None:
    text = CHANGELOG.read_text()
    versions = re.findall(r"^## (\d\S*) - ", text, re.MULTILINE)
    assert versions == [release.version for release in reversed(RELEASES)]
    assert "### Upgrading" in text.partition(f"## {RELEASES[0].version}")[0]


def test_the_version_is_that_of_the_library() -> None:
    output = run_command({**os.environ}, "--version")
    assert output.startswith(f"Library API {VERSION}, Django 5.2")


def test_the_image_and_the_package_have_the_number_of_the_release() -> None:
    assert f'image.version="{VERSION}"' in Path("Containerfile").read_text()
    assert f'\nversion = "{VERSION}"' in Path("pyproject.toml").read_text()
