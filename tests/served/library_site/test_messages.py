"""The catalog of German texts has the texts of the code."""

from pathlib import Path

import pytest
from django.core.management import call_command
from pytest_django import Settings

from tests.support.catalogs import read_source


@pytest.mark.usefixtures("gettext")
def test_the_catalog_has_the_texts_of_the_code(
    tmp_path: Path, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = Path(settings.LOCALE_PATHS[0], "de", "LC_MESSAGES", "django.po")
    for folder in [*settings.OWN_APPS, "templates"]:
        (tmp_path / folder).symlink_to(settings.BASE_DIR / folder)
    monkeypatch.chdir(tmp_path)
    settings.LOCALE_PATHS = [tmp_path / "found"]
    # Otherwise the command would write into the folder `locale`.
    call_command("makemessages", "-l", "de", "-v0", "--symlinks", "--ignore", "locale")
    found = read_source(tmp_path / "found" / "de" / "LC_MESSAGES" / "django.po")
    assert {message[:3] for message in found} == {message[:3] for message in read_source(source)}
