"""The look of the admin: one style sheet after Django's own, no inline style or script, and links for people."""

import re

import pytest
from django.contrib.auth.models import Group, Permission, User
from django.test import Client

from library_site.admin.badges import format_badge
from tests.support.admin_pages import read_text

pytestmark = pytest.mark.database_independent

INLINE = re.compile(r"<style|<script(?![^>]*\bsrc=)|\sstyle=|\son[a-z]+=")


@pytest.fixture
def librarian(client: Client, db: None) -> Client:
    """A client of a person who sees one model."""
    user = User.objects.create_user("astrid", is_staff=True)
    user.groups.add(Group.objects.get(name="Librarians"))
    client.force_login(user)
    return client


def list_sheets(page: str) -> list[str]:
    return re.findall(r'<link rel="stylesheet" href="/static/([^"]+)"', page)


@pytest.mark.parametrize("address", ["/admin/", "/admin/books/book/", "/admin/books/book/add/"])
def test_the_sheet_comes_after_those_of_django(librarian: Client, address: str) -> None:
    sheets = list_sheets(read_text(librarian.get(address)))
    assert sheets[-2:] == ["library_site/palette.css", "library_site/admin.css"]
    assert sheets[0] == "admin/css/base.css"


@pytest.mark.parametrize("address", ["/admin/", "/admin/books/book/", "/admin/books/book/add/", "/admin/auth/user/"])
def test_a_page_has_no_inline_style_or_script(root: Client, address: str) -> None:
    page = read_text(root.get(address))
    assert "</html>" in page
    assert not INLINE.search(page)


def test_only_people_who_see_several_models_get_a_sidebar(librarian: Client) -> None:
    assert 'id="nav-sidebar"' not in read_text(librarian.get("/admin/books/book/"))
    user = User.objects.get(username="astrid")
    user.groups.add(Group.objects.get(name="Developers"))
    assert 'id="nav-sidebar"' in read_text(librarian.get("/admin/books/book/"))


def test_the_header_leads_to_pages_for_people(librarian: Client) -> None:
    header = read_text(librarian.get("/admin/")).partition("<header")[2].partition("</header>")[0]
    links = re.findall(r'<a href="([^"]+)"', header)
    assert links == ["/admin/", "/accounts/apps", "/docs"]
    assert [librarian.get(link).headers["Content-Type"] for link in links] == ["text/html; charset=utf-8"] * 3


def test_date_and_time_have_a_name_each(root: Client) -> None:
    page = read_text(root.get("/admin/oauth/apikey/add/"))
    assert re.findall(r'name="expires_at_\d"[^>]*aria-label="([^"]*)"', page) == [
        "Expires at: date",
        "Expires at: time",
    ]


@pytest.mark.parametrize("model", ["group", "user"])
def test_what_is_permitted_are_boxes_with_a_label_each(root: Client, model: str) -> None:
    """Django's pairs of lists have no names that a screen reader says."""
    person = User.objects.create_user("ada")
    group = Group.objects.get(name="Librarians")
    page = read_text(root.get(f"/admin/auth/{model}/{(group if model == 'group' else person).pk}/change/"))
    boxes = re.findall(r'<label for="[^"]*"><input type="checkbox" name="(?:user_)?permissions"', page)
    assert len(boxes) == Permission.objects.count()
    assert "<select" not in page


def test_browsers_find_the_icon_where_they_look_for_it(client: Client, db: None) -> None:
    answer = client.get("/favicon.ico")
    assert (answer.status_code, answer.headers["Content-Type"]) == (200, "image/x-icon")
    assert b"".join(answer).startswith(b"\0\0\1\0")


@pytest.mark.database_independent
def test_a_badge_is_a_word() -> None:
    assert format_badge("<b>") == '<span class="badge">&lt;b&gt;</span>'
    assert format_badge("Revoked", "bad") == '<span class="badge bad">Revoked</span>'
