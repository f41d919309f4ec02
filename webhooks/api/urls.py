from django.urls import path

from webhooks.api.receive import Receive

app_name = "webhooks"
urlpatterns = [path("webhooks/receive/<slug:source>", Receive.as_view(), name="receive")]
