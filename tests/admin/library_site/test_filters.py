"""The filters beside the lists of the admin."""

import html
import re
from typing import Any

from django.contrib.auth.models import Group, User
from django.test import Client

from tests.support.admin_pages import read_text


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
