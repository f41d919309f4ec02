"""The root of the addresses: the library's, and a page of one's own."""

from django.http import HttpResponse
from django.urls import include, path


def show_hours(request):
    return HttpResponse("Open at nine.")


def handler404(request, exception):
    return HttpResponse("Nothing on this shelf.", status=404)


urlpatterns = [path("hours/", show_hours, name="hours"), path("", include("library_site.urls"))]
