"""The look of the admin: one style sheet after Django's own, no inline style or script, and links for people."""

import html
import re
from datetime import UTC, datetime
from typing import Any

from django.contrib import admin
from django.contrib.auth.models import Group, Permission, User
from django.contrib.contenttypes.models import ContentType
from django.test import Client
from django.utils import timezone

from library_site.admin.moments import format_moment
from oauth.accounts.roles import describe_group
from tests.support.admin_pages import ODD_IDS, read_text

INLINE = re.compile(r"<style|<script(?![^>]*\bsrc=)|\sstyle=|\son[a-z]+=")


def test_a_page_has_our_sheets_after_those_of_django_and_nothing_inline(root: Client) -> None:
    for address in ("/admin/", "/admin/books/book/", "/admin/books/book/add/", "/admin/auth/user/"):
        page = read_text(root.get(address))
        sheets = re.findall(r'<link rel="stylesheet" href="/static/([^"]+)"', page)
        assert sheets[-2:] == ["library_site/palette.css", "library_site/admin.css"], address
        assert sheets[0] == "admin/css/base.css", address
        assert "</html>" in page, address
        assert not INLINE.search(page), address


def read_bar(response: Any) -> str:
    return read_text(response).partition("<header")[2].partition("</header>")[0]


def list_bar_links(response: Any) -> list[str]:
    return re.findall(r'<a [^>]*href="([^"]+)"', read_bar(response))


ACCOUNT_LINKS = ["/accounts/profile", "/accounts/two-factor", "/accounts/password", "/accounts/apps", "/docs"]
BOOK_PAGES = ["/admin/books/book/", "/admin/books/book/lend/", "/admin/books/book/changes/"]
MORE_PAGES = ["/admin/books/book/genres/", "/admin/books/book/deleted/", "/admin/books/book/operations/"]


def test_the_bar_leads_a_librarian_to_what_they_may_do(librarian: Client) -> None:
    links = list_bar_links(librarian.get("/admin/"))
    # On a telephone the menu has what the bar has no room for.
    assert links == ["/admin/", *BOOK_PAGES, BOOK_PAGES[-1], *MORE_PAGES, *ACCOUNT_LINKS]
    responses = {link: librarian.get(link) for link in links}
    assert {response.status_code for response in responses.values()} == {200}
    assert list_bar_links(responses["/accounts/profile"]) == links


def test_the_bar_leads_to_what_one_administers(librarian: Client) -> None:
    assert "Manage" not in read_bar(librarian.get("/admin/"))
    User.objects.get(username="astrid").groups.add(Group.objects.get(name="Developers"))
    response = librarian.get("/admin/oauth/apikey/")
    assert "Manage" in read_bar(response)
    assert '<a href="/admin/oauth/apikey/" aria-current="page">' in read_bar(response)


def test_who_sees_no_books_finds_their_pages_on_the_first(client: Client, db: None) -> None:
    """A group that permits one thing alone leaves no empty card."""
    helper = User.objects.create_user("astrid", is_staff=True)
    client.force_login(helper)
    for codename, links in (
        ("add_book", ["/admin/books/book/add/"]),
        ("import_books", ["/admin/books/book/import/"]),
        ("view_apikey", ["/admin/oauth/apikey/"]),
        ("delete_book", []),
    ):
        helper.user_permissions.set(Permission.objects.filter(codename=codename))
        page = read_text(client.get("/admin/")).partition('id="content-main"')[2].partition("<footer")[0]
        assert re.findall(r'<a href="([^"]+)"', page) == links, codename
        assert ("Your account may see nothing here yet." in page) is (not links), codename


def test_the_menu_of_what_one_administers_has_one_order_in_all_languages(root: Client) -> None:
    for language, headings in (
        ("en", ["People", "Apps and keys", "Webhooks"]),
        ("de", ["Personen", "Apps und Schlüssel", "Webhooks"]),
    ):
        bar = read_bar(root.get("/admin/", headers={"Accept-Language": language}))
        assert re.findall(r'menu-heading">([^<]*)<', bar) == headings
        links = [link for link in re.findall(r'<a href="/admin/\w+/(\w+)/"', bar) if link != "book"]
        assert links == [
            *("group", "user", "application", "authorization", "apikey"),
            *("endpoint", "delivery", "source", "received"),
        ]


def test_who_may_not_enter_the_admin_sees_their_account_alone(client: Client, db: None) -> None:
    client.force_login(User.objects.create_user("ada", password="a-long-phrase-1"))
    assert list_bar_links(client.get("/accounts/profile")) == ["/accounts/profile", *ACCOUNT_LINKS]


def test_a_heading_names_the_thing(root: Client) -> None:
    person = f"/admin/auth/user/{User.objects.create_user('ada', password='a-long-phrase-1').pk}"
    for address, heading in (
        ("/admin/", "Library"),
        ("/admin/oauth/apikey/", "API keys"),
        ("/admin/auth/", "People"),
        (f"{person}/change/", "ada"),
        (f"{person}/password/", "Change password: ada"),
    ):
        page = read_text(root.get(address))
        assert f"<h1>{heading}</h1>" in page, address
        assert f"<title>{heading} | Library</title>" in page, address


def test_what_is_permitted_are_boxes_with_a_sentence_each(root: Client) -> None:
    """Django's pairs of lists have no names that a screen reader says, and its 150 names say little to people."""
    person, group = User.objects.create_user("ada"), Group.objects.get(name="Librarians")
    box = r'<label><input type="checkbox" name="(?:user_)?permissions" value="[0-9,]+"( checked)?> ([^<]*)</label>'
    for row, checked in ((f"group/{group.pk}", describe_group(group)), (f"user/{person.pk}", [])):
        page = read_text(root.get(f"/admin/auth/{row}/change/"))
        boxes = re.findall(box, page)
        assert [label for is_checked, label in boxes if is_checked] == checked, row
        assert "<select" not in page, row


def test_browsers_find_the_icon_where_they_look_for_it(client: Client, db: None) -> None:
    response = client.get("/favicon.ico")
    assert (response.status_code, response.headers["Content-Type"]) == (200, "image/x-icon")
    assert b"".join(response).startswith(b"\0\0\1\0")


EMPTY_LISTS = [
    ("/admin/oauth/apikey/", "No program has a key yet.", "/admin/oauth/apikey/add/"),
    ("/admin/oauth/authorization/", "Nobody has given an app access yet.", "/admin/oauth2_provider/application/"),
    ("/admin/webhooks/endpoint/", "No program is told yet what happens", "/admin/webhooks/endpoint/add/"),
    ("/admin/webhooks/delivery/", "No event has been sent yet", "/admin/webhooks/endpoint/"),
    ("/admin/webhooks/source/", "No other service sends its events here yet.", "/admin/webhooks/source/add/"),
    ("/admin/webhooks/received/", "No source has sent an event yet.", "/admin/webhooks/source/"),
    ("/admin/auth/user/?q=nobody", "Nothing here matches.", "/admin/auth/user/add/ ?"),
]


def test_an_empty_list_says_one_sentence_and_offers_one_button(root: Client) -> None:
    for address, sentence, links in EMPTY_LISTS:
        page = read_text(root.get(address)).partition('id="content"')[2].partition("<footer")[0]
        [buttons] = re.findall(r'<div class="card empty"><p>(.*?)</p>(.*?)</div>', page, re.DOTALL)
        assert buttons[0].startswith(sentence), address
        assert re.findall(r'<a class="button[^"]*" href="([^"]*)"', page) == links.split(), address
        assert "selected" not in page, address


def test_a_time_is_short_and_its_tooltip_has_the_zone() -> None:
    moment = datetime(2026, 1, 31, 2, 0, 5, tzinfo=UTC)
    for zone, text, title in (
        ("Europe/Berlin", "31 Jan 2026, 03:00", "31 Jan 2026, 03:00:05 CET"),
        ("America/New_York", "30 Jan 2026, 21:00", "30 Jan 2026, 21:00:05 EST"),
    ):
        with timezone.override(zone):
            assert f'title="{title}">{text}</time>' in format_moment(moment)


def test_each_link_of_a_filter_opens(root: Client) -> None:
    """Django offers people without a group once there are groups."""
    User.objects.create_user("astrid").groups.add(Group.objects.get(name="Librarians"))
    statuses: dict[str, int] = {}
    pages: Any = root.get("/admin/").context["available_apps"]
    for address in [model["admin_url"] for app in pages for model in app["models"]]:
        filters = read_text(root.get(address)).partition('class="facets"')[2].partition("</nav>")[0]
        for query in re.findall(r'<a href="(\?[^"]+)"', filters):
            link = address + html.unescape(query)
            statuses[link] = root.get(link, follow=True).status_code
    assert "/admin/auth/user/?groups__isnull=True" in statuses
    assert {link: status for link, status in statuses.items() if status != 200} == {}


def test_no_id_makes_the_way_to_a_public_page_fail(root: Client) -> None:
    """Some tables have ids that are no numbers; none of ours has such pages."""
    for content_type in ContentType.objects.all():
        model = content_type.model_class()
        # The ids of tables without pages are not looked at.
        for row_id in ["1", *(ODD_IDS if model and admin.site.is_registered(model) else [])]:
            assert root.get(f"/admin/r/{content_type.pk}/{row_id}/").status_code == 404
