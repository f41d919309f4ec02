"""README and docs/ name what the code has: settings, commands, codes, events, scopes, links."""

import re
from pathlib import Path

from django.core.management import get_commands
from pytest_django import Settings

from books.files.columns.tables import TABLE_DIALECTS
from library_site.http.errors import CODES_BY_DRF_CODE, CODES_BY_STATUS
from oauth.scopes import SCOPES
from tests.support.documents import list_dependencies
from webhooks.registry import EVENT_KINDS, PING_KIND

ROOT = Path(__file__).parents[3]
README, APP_DEVELOPERS, OPERATIONS = ROOT / "README.md", ROOT / "docs/app-developers.md", ROOT / "docs/operations"
DOCUMENTS = [README, *sorted((ROOT / "docs").rglob("*.md"))]
PACKAGES = ("books", "webhooks", "oauth", "library_site")
CHECK_ID = re.compile(r"(?:library_site|oauth|webhooks|books)\.[EIW]\d{3}")


def test_every_document_is_linked() -> None:
    linked = {(page.parent / target).resolve() for page in DOCUMENTS for target in list_links(page)}
    assert {*DOCUMENTS} - {README} <= linked


def test_every_setting_is_documented() -> None:
    source = (ROOT / "library_site" / "settings.py").read_text()
    names = set(re.findall(r'env\.\w+\(\s*f?"(\w+)"', source.replace("{number}", "1"))) - {"API_V"}
    # `env.secret_text` reads them.
    files = {"SECRET_KEY_FILE", "DATABASE_URL_FILE"}
    assert names | files == set(list_rows(OPERATIONS / "settings.md"))


def test_every_command_is_documented(settings: Settings) -> None:
    own = {name for name, app in get_commands().items() if app in settings.OWN_APPS}
    assert own <= set(list_rows(OPERATIONS / "runbook.md", "Commands")) <= get_commands().keys()


def test_every_system_check_is_documented() -> None:
    sources = [path.read_text() for app in PACKAGES for path in (ROOT / app).rglob("*.py")]
    assert {name for source in sources for name in CHECK_ID.findall(source)} == set(
        list_rows(OPERATIONS / "install.md", "Deployment")
    )


def test_every_error_code_is_documented() -> None:
    codes = {*CODES_BY_STATUS.values(), *CODES_BY_DRF_CODE.values()}
    assert codes == set(list_rows(APP_DEVELOPERS, "Error codes"))


def test_every_event_is_documented() -> None:
    assert {*EVENT_KINDS, PING_KIND} == set(list_rows(APP_DEVELOPERS, "Webhooks"))


def test_every_program_whose_tables_are_recognised_is_documented() -> None:
    text = (ROOT / "docs/librarians.md").read_text()
    assert [dialect.name for dialect in TABLE_DIALECTS if not dialect.is_exact and dialect.name not in text] == []


def test_every_scope_is_documented() -> None:
    addresses = {"GET", "POST", "PUT", "PATCH", "DELETE"}
    assert set(SCOPES) == set(list_rows(APP_DEVELOPERS, "Apps and keys")) - addresses


def test_every_link_leads_somewhere() -> None:
    for document in DOCUMENTS:
        for target in list_links(document):
            path, _, anchor = target.partition("#")
            linked = (document.parent / path).resolve() if path else document
            assert linked.exists(), (document, target)
            assert not anchor or anchor in list_anchors(linked), (document, target)


def test_every_dependency_is_imported_and_says_what_for() -> None:
    source = "".join(path.read_text() for app in PACKAGES for path in (ROOT / app).rglob("*.py"))
    dependencies = list_dependencies()
    assert [item.name for item in dependencies if not item.purpose] == []
    words = {*re.findall(r"\w+", source)}
    assert [item.name for item in dependencies if not item.imports & words] == []


def list_rows(document: Path, section: str = "") -> list[str]:
    """The first words of the rows of the tables in a section, or in the whole document."""
    text = split_section(document, section) if section else document.read_text()
    return re.findall(r"^\| `([^`\s]+)", text, re.MULTILINE)


def split_section(document: Path, section: str) -> str:
    return document.read_text().split(f"\n## {section}\n")[1].split("\n## ")[0]


def list_links(document: Path) -> list[str]:
    """The relative targets of links, and of pictures."""
    targets = re.findall(r'(?:\]\(|(?:src|srcset)=")([^)\s"]+)', document.read_text())
    return [target for target in targets if "://" not in target]


def list_anchors(document: Path) -> set[str]:
    headings = re.findall(r"^#+ (.+)$", document.read_text(), re.MULTILINE)
    return {build_anchor(heading) for heading in headings}


def build_anchor(heading: str) -> str:
    """The anchor of a heading, as GitHub makes it."""
    return re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-")
