"""A resource beside the books, which names nothing of them: what a plain model with a version needs."""

from typing import Any, ClassVar

from django.apps.registry import Apps
from django.db import models
from django.urls import include, path

from library_site.api.pagination import CursorPagination
from library_site.api.serializers import RejectUnknownMixin, StrictModelSerializer, make_optional
from library_site.api.viewsets import ResourceViewSet
from library_site.http.versions import get_versions
from library_site.urls import urlpatterns as pages


class Shelf(models.Model):
    name = models.CharField(max_length=20)
    places = models.IntegerField(default=10)
    version = models.IntegerField(default=1)
    objects: ClassVar[models.Manager[Any]] = models.Manager()

    class Meta:
        app_label = "shelves"
        # A registry of its own: other tests look at all tables.
        apps = Apps()

    def __str__(self) -> str:
        return self.name


class ShelfSerializer(StrictModelSerializer):
    """A shelf."""

    class Meta:
        model = Shelf
        fields = ("id", "name", "places", "version")


class ShelfCreateSerializer(RejectUnknownMixin, StrictModelSerializer):
    """A new shelf."""

    ignored_fields = frozenset({"id", "version"})

    class Meta:
        model = Shelf
        fields = ("name", "places")


class ShelfChangeSerializer(ShelfCreateSerializer):
    """The fields of a change."""

    class Meta(ShelfCreateSerializer.Meta):
        extra_kwargs = make_optional(ShelfCreateSerializer.Meta)


class ShelfViewSet(ResourceViewSet):
    noun, plural = "shelf", "shelves"
    queryset = Shelf.objects.all()
    serializer_class = ShelfSerializer
    body_serializers = {
        "create": ShelfCreateSerializer,
        "update": ShelfCreateSerializer,
        "partial_update": ShelfChangeSerializer,
    }
    pagination_class = CursorPagination


ITEM_ACTIONS = {"get": "retrieve", "put": "update", "patch": "partial_update", "delete": "destroy"}
patterns = [
    path("shelves", ShelfViewSet.as_view({"get": "list", "post": "create"}), name="shelves"),
    path("shelves/<int:pk>", ShelfViewSet.as_view(ITEM_ACTIONS), name="shelf"),  # type: ignore[arg-type]  # names
]
urlpatterns = [path("api/v2/", include(([*patterns, *get_versions()[2].urlpatterns], "v2"))), *pages]
