"""What the migrations put into the tables of a new library."""

import pytest
from django.contrib.auth.models import Group, Permission

pytestmark = pytest.mark.django_db

OF_LIBRARIANS = {
    "Can add book",
    "Can change book",
    "Can delete book",
    "Can view book",
    "Can view the history of books",
}
OF_HEAD_LIBRARIANS = {
    "Can cancel and undo the operations of others",
    "Can edit many books together",
    "Can import books",
    "Can merge books",
}
OF_DEVELOPERS = {
    *(f"Can {action} application" for action in ("add", "change", "delete", "view")),
    *(f"Can {action} API key" for action in ("add", "change", "view")),
    *(f"Can {action} authorization" for action in ("change", "view")),
    *(f"Can {action} endpoint" for action in ("add", "change", "delete", "view")),
    *(f"Can {action} delivery" for action in ("change", "view")),
    *(f"Can view {model}" for model in ("attempt", "event", "source")),
}


def test_groups_have_their_permissions() -> None:
    groups = {group.name: {*group.permissions.values_list("name", flat=True)} for group in Group.objects.all()}
    assert groups["Librarians"] == OF_LIBRARIANS
    assert groups["Head librarians"] == OF_LIBRARIANS | OF_HEAD_LIBRARIANS
    assert groups["Developers"] == OF_DEVELOPERS


def test_the_inbox_is_for_nobody_yet() -> None:
    permission = Permission.objects.get(codename="view_received")
    assert (permission.name, permission.group_set.count()) == ("Can view received", 0)
