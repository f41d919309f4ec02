"""Pages that begin beyond a key."""

from itertools import product

import pytest
from django.db.models import F

from books.models import Actor
from library_site.db.keyset import Order, Start


@pytest.mark.django_db
@pytest.mark.parametrize("descending", [False, True])
@pytest.mark.parametrize("names", [["app_name"], ["channel", "app_name"]])
def test_rows_beyond_a_key_have_it_neither_before_nor_among_them(names: list[str], descending: bool) -> None:
    Actor.objects.all().delete()
    Actor.objects.bulk_create(
        Actor(channel=channel, app_name=name, identity=channel + name) for channel, name in product("ab", "xyz")
    )
    order, actors = Order(*map(F, names)), Actor.objects.values_list(*names)
    rows = list(order.sort(actors, descending=descending))
    for row in rows:
        last = max(index for index, other in enumerate(rows) if other == row)
        assert list(order.sort(actors, Start(row), descending=descending)) == rows[last + 1 :]
