"""The root of the addresses: the library's, and pages of one's own."""

from django.contrib import admin
from django.http import HttpResponse
from django.urls import include, path
from reviews.models import Review

from books.models import Book
from library_site.urls import handler500  # noqa: F401

shop = admin.AdminSite(name="shop")
shop.register([Book, Review])


def show_hours(request):
    return HttpResponse("Open at nine.")


def borrow(request, pk):
    book = Book.objects.get(pk=pk)
    book.available = False
    book.save()
    return HttpResponse(status=204)


def handler404(request, exception):
    return HttpResponse("Nothing on this shelf.", status=404)


urlpatterns = [
    path("hours/", show_hours, name="hours"),
    path("borrow/<int:pk>/", borrow, name="borrow"),
    path("shop/", shop.urls),
    path("", include("library_site.urls")),
]
