"""The addresses of each version."""

from django.urls import path, re_path

from books.api.fast_routes import one_book, part_of_all
from books.api.v1.views import Version1
from books.api.v2.views import Version2
from oauth.api.v2.views import APIKeys
from webhooks.api.v2.deliveries import Deliveries
from webhooks.api.v2.endpoints import Webhooks
from webhooks.api.v2.events import Events

version_1 = [
    path("books", Version1.as_view({"get": "list", "post": "create"}), name="books"),
    path(
        "books/<str:book_id>",
        Version1.as_view({"get": "retrieve", "put": "update", "delete": "destroy"}),
        name="book",
    ),
]
version_2 = [
    path("books", Version2.as_view({"get": "list", "post": "create"}), name="books"),
    path("books/bulk", Version2.as_view({"post": "change_many"}), name="bulk"),
    path(
        "books/<str:book_id>",
        Version2.as_view({"get": "retrieve", "put": "update", "patch": "partial_update", "delete": "destroy"}),
        name="book",
    ),
    path("api-keys", APIKeys.as_view({"get": "list", "post": "create"}), name="api-keys"),
    re_path(
        r"^api-keys/(?P<key_id>[0-9a-f]{12})$",
        APIKeys.as_view({"get": "retrieve", "delete": "destroy"}),
        name="api-key",
    ),
    path("webhooks", Webhooks.as_view({"get": "list", "post": "create"}), name="webhooks"),
    path(
        "webhooks/<int:webhook_id>",
        Webhooks.as_view({"get": "retrieve", "patch": "partial_update", "delete": "destroy"}),
        name="webhook",
    ),
    path("webhooks/<int:webhook_id>/secret", Webhooks.as_view({"post": "add_secret"}), name="webhook-secret"),
    path("webhooks/<int:webhook_id>/secret/promote", Webhooks.as_view({"post": "promote"}), name="webhook-promote"),
    path("webhooks/<int:webhook_id>/ping", Webhooks.as_view({"post": "ping"}), name="webhook-ping"),
    path("webhooks/<int:webhook_id>/replay", Webhooks.as_view({"post": "replay"}), name="webhook-replay"),
    path("webhooks/<int:webhook_id>/deliveries", Deliveries.as_view({"get": "list"}), name="deliveries"),
    path(
        "webhooks/<int:webhook_id>/deliveries/<int:delivery_id>",
        Deliveries.as_view({"get": "retrieve"}),
        name="delivery",
    ),
    path(
        "webhooks/<int:webhook_id>/deliveries/<int:delivery_id>/redeliver",
        Deliveries.as_view({"post": "redeliver"}),
        name="redeliver",
    ),
    path("events", Events.as_view({"get": "follow"}), name="events"),
]

# What `library_site.http.fast_path` asks without a request, by version.
questions = {1: [one_book(Version1), part_of_all(Version1)], 2: [one_book(Version2)]}
