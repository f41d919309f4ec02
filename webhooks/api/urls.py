"""The URL without a version, where other services send events."""

from django.urls import path

from webhooks.api.receive import ReceiveView

app_name = "webhooks"
urlpatterns = [path("webhooks/receive/<slug:source>", ReceiveView.as_view(), name="receive")]
