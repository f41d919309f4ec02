"""The addresses of webhooks, their deliveries and the stream of events in version 2."""

from django.urls import path

from webhooks.api.v2.deliveries import DeliveryViewSet
from webhooks.api.v2.endpoints import EndpointViewSet
from webhooks.api.v2.events import EventViewSet

urlpatterns = [
    path("webhooks", EndpointViewSet.as_view({"get": "list", "post": "create"}), name="webhooks"),
    path(
        "webhooks/<int:webhook_id>",
        EndpointViewSet.as_view({"get": "retrieve", "patch": "partial_update", "delete": "destroy"}),
        name="webhook",
    ),
    path("webhooks/<int:webhook_id>/secret", EndpointViewSet.as_view({"post": "add_secret"}), name="webhook-secret"),
    path(
        "webhooks/<int:webhook_id>/secret/promote", EndpointViewSet.as_view({"post": "promote"}), name="webhook-promote"
    ),
    path("webhooks/<int:webhook_id>/ping", EndpointViewSet.as_view({"post": "ping"}), name="webhook-ping"),
    path("webhooks/<int:webhook_id>/replay", EndpointViewSet.as_view({"post": "replay"}), name="webhook-replay"),
    path("webhooks/<int:webhook_id>/deliveries", DeliveryViewSet.as_view({"get": "list"}), name="deliveries"),
    path(
        "webhooks/<int:webhook_id>/deliveries/<int:delivery_id>",
        DeliveryViewSet.as_view({"get": "retrieve"}),
        name="delivery",
    ),
    path(
        "webhooks/<int:webhook_id>/deliveries/<int:delivery_id>/redeliver",
        DeliveryViewSet.as_view({"post": "redeliver"}),
        name="redeliver",
    ),
    path("events", EventViewSet.as_view({"get": "follow"}), name="events"),
]
