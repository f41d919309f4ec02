"""A compiled query gives the rows of its queryset, for each value of its parameters."""

import pytest
from django.contrib.auth.models import User
from django.db.models import BooleanField, ExpressionWrapper, Q

from library_site.db.sql import CompiledQuery, Parameter

pytestmark = pytest.mark.django_db


def test_the_parameters_come_with_each_call() -> None:
    query = CompiledQuery(User.objects.filter(username=Parameter("name")).values("username", "is_active"))
    for name in ("ada", "emma"):
        User.objects.create_user(name)
        assert query.fetch_all(name=name) == [{"username": name, "is_active": True}]
    assert query.fetch_all(name="nobody") == []


def test_constants_become_part_of_the_statement() -> None:
    names = ["it's", "50%", "100%s", "%%"]
    users = User.objects.filter(Q(username__in=names, pk__gte=Parameter("first"))).order_by("pk")
    query = CompiledQuery(users.values("username", first=ExpressionWrapper(Q(pk=Parameter("first")), BooleanField())))
    pks = [User.objects.create_user(name).pk for name in names]
    rows = query.fetch_all(first=pks[1])
    assert [(row["username"], bool(row["first"])) for row in rows] == [("50%", True), ("100%s", False), ("%%", False)]
    assert query.fetch_all(first=0)[0]["username"] == "it's"
