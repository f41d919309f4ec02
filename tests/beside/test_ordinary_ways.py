"""What a Django developer may rely on in an app beside the library: each test is a sentence."""

import logging
import re
import subprocess
from types import SimpleNamespace

import pytest
from asgiref.sync import async_to_sync
from django import forms
from django.contrib import admin
from django.contrib.auth import BACKEND_SESSION_KEY
from django.contrib.sessions.models import Session
from django.core import checks
from django.core.management import call_command
from django.core.management.sql import emit_post_migrate_signal
from django.db import DEFAULT_DB_ALIAS, connection, models, transaction
from django.db.models import PROTECT, Avg, Count, F, ProtectedError, Value
from django.forms import modelform_factory
from django.test import AsyncClient
from django.test.client import encode_multipart
from django.test.runner import DiscoverRunner
from django.test.utils import isolate_apps
from django.urls import resolve, reverse
from oauth2_provider.models import Application
from oauth2_provider.scopes import get_scopes_backend
from rest_framework.test import APIClient, APIRequestFactory, force_authenticate
from reviews.models import Review

from books.admin.pages import BookAdmin
from books.api.v2.views import BookViewSetV2
from books.models import Book, Change, UnrecordedWrite
from books.serializers import BookSerializer
from books.writing.instances import StaleBook
from library_site.db.statements import time_statement
from library_site.management.commands import test as suite_command
from library_site.monitoring.log_formatters import TextFormatter
from tests.support.books import build_book
from tests.support.oauth_flows import create_key_header
from tests.support.waiting import PROCESS_TIMEOUT

pytestmark = pytest.mark.django_db


def make_book(**values):
    return Book.objects.create(**build_book(**values))


# Views and addresses


def test_a_validation_hook_of_a_field_is_run(api):
    assert api.post("/api/v2/polite", json=build_book(title="  darn  ")).status_code == 422
    assert api.post("/api/v2/polite", json=build_book(title="EMMA")).json()["title"] == "Emma"


def test_the_validation_hook_of_a_serializer_is_run(api):
    refused = api.post("/api/v2/polite", json=build_book(title="Emma", author="Emma"))
    assert refused.json()["error"]["details"] == [{"field": "body", "message": "Nobody is called like a book."}]


def test_a_prefetch_of_the_queryset_counts_for_one_book(api):
    book = make_book()
    best = [Review.objects.create(book=book, stars=stars) for stars in (4, 5)][1]
    assert api.get(f"/api/v2/best/{book.pk}").json() == {"id": book.pk, "best": [best.pk]}


def test_a_viewset_may_have_no_queryset_but_get_queryset(api):
    make_book()
    praised = make_book()
    Review.objects.bulk_create(Review(book=praised, stars=5) for _ in range(2))
    assert [book["id"] for book in api.get("/api/v2/praised").json()["results"]] == [praised.pk]


def test_attributes_of_a_pagination_count(api):
    make_book(), make_book(isbn="2"), make_book(isbn="3")
    pages = {query: api.get(f"/api/v2/few{query}").json() for query in ("", "?size=2", "?limit=2&from=2")}
    assert [len(page) for page in pages.values()] == [1, 2, 1]
    assert pages["?limit=2&from=2"][0]["isbn"] == "3"
    assert api.get("/api/v2/few?size=3").status_code == 422
    assert len(api.get("/api/v2/fewer?size=2&from=1").json()) == 2


def test_perform_create_may_be_one_save(api):
    created, refused = [api.post("/api/v2/saving", json=build_book(isbn="1")) for _ in range(2)]
    assert (created.json()["genre"], refused.status_code) == ("Saved", 409)


def test_create_and_update_of_a_serializer_are_called(api):
    book = api.post("/api/v2/loud", json={**build_book(title="Emma"), "note": "Loud"}).json()
    assert book["genre"] == "Loud"
    address, values = f"/api/v2/loud/{book['id']}", build_book(isbn=book["isbn"], title="Persuasion")
    assert api.put(address, json=values).json()["title"] == "PERSUASION"
    assert api.put(address, json=values, headers={"If-Match": f'"{book["id"]}-1-0"'}).status_code == 412


def test_an_etag_of_a_views_own_is_made_of_a_book(api):
    book = make_book()
    address, right, wrong = f"/api/v2/loud/{book.pk}", {"If-Match": f'"{book.pk}-2-0"'}, {"If-Match": '"1"'}
    assert api.put(address, json=build_book(title="Persuasion")).headers["ETag"] == right["If-Match"]
    assert api.delete(address, headers=wrong).status_code == 412
    assert api.delete(address, headers=right).status_code == 204


def test_the_data_of_a_response_are_dicts(api):
    make_book(title="Emma")
    assert api.get("/api/v2/loud").json() == {"titles": ["Emma"]}
    bulk = {"operations": [{"op": "create", "book": build_book()}]}
    assert APIClient().post("/api/v2/books/bulk", bulk, format="json").data["results"][0]["op"] == "create"


def test_one_serializer_of_a_proxy_may_do_for_all(api):
    """A PATCH is partial, another kind of body is refused, and the document has the body."""
    assert api.post("/api/v2/spines", content=b"title=Emma", headers={"Content-Type": "text/plain"}).status_code == 415
    assert api.post("/api/v2/spines", json=build_book(title="Emma", author="Austen")).json()["spine"] == "Austen: Emma"
    address = f"/api/v2/spines/{Book.objects.get().pk}"
    assert api.patch(address, json={"title": "Persuasion"}).json()["spine"] == "Austen: Persuasion"
    assert api.get(address).json()["spine"] == "Austen: Persuasion"
    operation = api.get("/openapi/v2.json").json()["paths"]["/api/v2/spines/{book_id}"]["patch"]
    assert operation["requestBody"]["content"].keys() >= {"application/json"}


def test_a_viewset_may_take_forms(api):
    client = APIClient()
    assert client.post("/api/v2/forms", build_book(title="Emma", author="Austen")).data["spine"] == "Austen: Emma"
    refused = client.post("/api/v2/forms", build_book(year="old"))
    assert (refused.status_code, refused.data["error"]["details"][0]["field"]) == (422, "year")
    assert client.post("/api/v2/forms", build_book(), format="json").status_code == 415
    form = encode_multipart("in quotation marks", build_book())
    for start, end in (("multipart/form-data; ", ""), ("Multipart/Form-Data;charset=utf-8; ", " ;x")):
        headers = {"Content-Type": f'{start}boundary="in quotation marks"{end}'}
        assert api.post("/api/v2/forms", content=form, headers=headers).json()["title"] == "Pride and Prejudice"
        Book.objects.get(author="Jane Austen").delete()


def test_a_method_decorator_of_a_viewset_counts(api):
    assert "max-age=60" in api.get("/api/v2/cached").headers["Cache-Control"]


def test_a_renderer_of_pages_shows_books_and_their_filters(api):
    page = api.get("/api/v2/browsed", headers={"Accept": "text/html"})
    assert (page.status_code, 'name="year_min"' in page.text) == (200, True)


def test_what_any_view_writes_is_a_change_by_whoever_sent_the_request(api, admin_user, admin_client):
    book = api.post(
        "/api/v2/plain-books", json={"title": "Emma", "author": "Jane"}, headers=create_key_header(admin_user)
    ).json()
    admin_client.post(reverse("borrow", args=[book["id"]]))
    changes = (
        Change.objects.filter(book_id=book["id"]).order_by("version").values_list("actor__channel", "actor__user_id")
    )
    assert [*changes] == [("v2", admin_user.pk), ("admin", admin_user.pk)]


@pytest.mark.django_db(transaction=True)
def test_a_request_may_be_a_transaction(api, settings, admin_user):
    settings.DATABASES["default"]["ATOMIC_REQUESTS"] = True
    try:
        refused = api.post(
            "/api/v2/plain-books", json={"title": "No", "author": "No"}, headers=create_key_header(admin_user)
        )
        taken = [api.post("/api/v2/books", json=build_book(isbn="1")).status_code for _ in range(2)]
    finally:
        settings.DATABASES["default"]["ATOMIC_REQUESTS"] = False
    assert (refused.status_code, taken, Book.objects.count()) == (422, [201, 409], 1)


def test_a_function_may_be_a_view(api, admin_user):
    header = create_key_header(admin_user)
    assert api.get("/api/v2/who", headers=header).json() == {"user": "admin", "is_staff": True}
    assert api.get("/api/v2/who").json() == {"user": "", "is_staff": False}


def test_a_view_may_take_passwords_with_each_request(api, admin_user):
    statuses = [api.get("/api/v2/who", auth=("admin", "password")).status_code for _ in range(6)]
    assert statuses == [200] * 6
    assert api.get("/api/v2/who", auth=("admin", "wrong")).status_code == 401


def test_a_serializer_shows_links(api):
    """At an address that begins like a version's."""
    book = make_book()
    [shown] = api.get("/api/v2/volumes").json()
    assert shown["url"].endswith(f"/api/v2/books/{book.pk}")


def test_the_documents_show_what_an_app_adds(api):
    document = api.get("/openapi/v2.json").json()
    assert document["webhooks"]["review.written"]["post"]["summary"] == "A review was written."
    paths = document["paths"]
    assert {"/api/v2/reviews", "/api/v2/reviews/{id}", "/api/v2/who", "/api/v2/best/{book_id}"} <= paths.keys()


def test_our_addresses_have_names():
    assert reverse("v2:book", args=[7]) == "/api/v2/books/7"
    assert reverse("v2:review-list") == "/api/v2/reviews"
    assert reverse("admin:books_book_change", args=[7]) == "/admin/books/book/7/change/"
    assert resolve("/api/v2/reviews").view_name == "v2:review-list"


def test_the_root_of_the_addresses_may_include_ours(client):
    assert client.get(reverse("hours")).content == b"Open at nine."


def test_a_handler404_of_the_root_counts(client):
    assert client.get("/nowhere/").content == b"Nothing on this shelf."


# Middleware and clients of tests


def test_a_handler404_of_the_root_leaves_the_interface_its_format(api):
    assert api.get("/api/v2/reviews/1").json()["error"]["code"] == "NOT_FOUND"


def test_middleware_sees_requests_of_pages(client):
    assert client.get("/accounts/login").headers["X-Greeting"] == "Hello"


def test_middleware_sees_requests_of_the_interface(api):
    book = make_book()
    for address in (f"/api/books/{book.pk}", f"/api/v2/books/{book.pk}", "/api/v2/reviews"):
        assert api.get(address).headers["X-Greeting"] == "Hello"


def test_middleware_may_read_the_body_after_the_response(api):
    assert api.post("/api/v2/books", json=build_book()).headers["X-Body"] == '{"title":'


def test_middleware_may_read_the_body_before_all_others(api):
    read = {"X-Read": "yes"}
    assert api.post("/api/v2/books", json=build_book(title="Emma"), headers=read).json()["title"] == "Emma"
    assert api.post("/api/v2/books", data=build_book(title="Emma"), headers=read).status_code == 415


def test_middleware_may_answer_a_request_of_the_interface(api):
    assert api.get("/api/v2/books", headers={"X-Refuse": "yes"}).status_code == 451


def test_force_authenticate_makes_a_user_of_the_request(admin_user):
    client = APIClient()
    client.force_authenticate(admin_user)
    assert client.get("/api/v2/who").json() == {"user": "admin", "is_staff": True}


def test_the_client_of_tests_signs_in_with_a_password(client, admin_user, caplog):
    assert client.login(username="admin", password="password")
    assert client.session[BACKEND_SESSION_KEY] == "oauth.passwords.lockout.LockoutBackend"
    assert Session.objects.get().get_decoded()[BACKEND_SESSION_KEY] == "django.contrib.auth.backends.ModelBackend"
    assert client.get("/accounts/password").status_code == 200
    assert not client.login(username="admin", password="wrong")
    assert not caplog.records


def test_a_view_may_be_called_with_a_request_of_a_factory(admin_user):
    book = make_book()
    request = APIRequestFactory().get("/api/v2/books/1")
    force_authenticate(request, admin_user)
    view = BookViewSetV2.as_view({"get": "retrieve"})
    response = view(request, book_id=str(book.pk))
    assert (response.status_code, response["ETag"]) == (200, f'"v2-{book.pk}-1"')


def test_a_body_that_rest_framework_does_not_read_is_no_empty_change(admin_user):
    request = APIRequestFactory().patch("/api/v2/books/1", {"title": "New"}, format="json")
    del request.META["CONTENT_LENGTH"]
    force_authenticate(request, admin_user)
    view = BookViewSetV2.as_view({"patch": "partial_update"})
    response = view(request, book_id=str(make_book().pk))
    assert (response.status_code, b"missing" in response.content) == (422, True)


class ChunkedClient(AsyncClient):
    """Sends no length, as a server does with a body that came in chunks."""

    async def request(self, **request):
        headers = [pair for pair in request.pop("headers", []) if pair[0] != b"content-length"]
        return await super().request(headers=headers, **request)


async def write_and_read(client):
    response = await client.post("/api/v2/books", build_book(), content_type="application/json")
    return response.status_code, (await client.get("/api/books")).status_code


@pytest.mark.parametrize("client_class", [AsyncClient, ChunkedClient])
@pytest.mark.django_db(transaction=True)
def test_an_async_client_writes_and_reads(client_class):
    assert async_to_sync(write_and_read)(client_class()) == (201, 200)


def test_hooks_of_a_bulk_view_see_its_operations(admin_user):
    seen = []

    class LoggedBooks(BookViewSetV2):
        def finalize_response(self, request, *arguments, **options):
            seen.extend(request.data["operations"])
            return super().finalize_response(request, *arguments, **options)

    operations = [{"op": "create", "book": build_book()}]
    request = APIRequestFactory().post("/api/v2/books/bulk", {"operations": operations}, format="json")
    force_authenticate(request, admin_user)
    assert LoggedBooks.as_view({"post": "bulk"})(request).status_code == 200
    assert seen == operations


def test_a_serializer_shows_only_the_fields_in_a_list(db):
    book = make_book()
    assert BookSerializer(book, only=["id", "title"]).data == {"id": book.pk, "title": book.title}


# Models


def test_an_error_of_a_protected_book_is_logged(monkeypatch):
    monkeypatch.setattr(Review._meta.get_field("book").remote_field, "on_delete", PROTECT)
    review = Review.objects.create(book=make_book())
    with pytest.raises(ProtectedError) as raised:
        review.book.delete()
    record = logging.LogRecord("reviews", logging.ERROR, "", 1, "It failed", (), raised._excinfo)
    assert "Review.book" in TextFormatter().format(record)


@isolate_apps("books", "tests.beside")
def test_a_model_that_inherits_from_book_is_refused():
    atlas = type("Atlas", (Book,), {"__module__": __name__, "Meta": type("Meta", (), {"app_label": "beside"})})
    with pytest.raises(UnrecordedWrite, match="OneToOneField"):
        atlas(**build_book()).save()


def test_a_manager_of_a_proxy_without_history_is_reported():
    managers = {"unguarded": models.Manager(), "guarded": models.Manager.from_queryset(type(Book.objects.all()))()}
    meta = type("Meta", (), {"app_label": "beside", "proxy": True})
    proxy = type("Novel", (Book,), {"__module__": __name__, "Meta": meta, **managers})
    assert [error.msg for error in proxy.check()] == ["beside.Novel.unguarded writes books without their history."]


def test_an_expression_is_saved():
    with pytest.raises(ValueError, match="no expressions"):
        make_book(title=Value("Emma"))
    book = make_book(year=1815)
    book.year = F("year") + 1
    book.save()
    assert book.year == Book.objects.get().year == 1816


def test_relations_are_followed_in_both_directions(django_assert_num_queries):
    book = make_book()
    Review.objects.create(book=book)
    with django_assert_num_queries(2):
        [found] = Book.objects.prefetch_related("reviews").filter(pk=book.pk)
        assert [review.stars for review in found.reviews.all()] == [3]
    with django_assert_num_queries(1):
        assert Review.objects.select_related("book").get().book == book


def test_books_are_aggregated_and_annotated():
    for stars in (1, 3):
        Review.objects.create(book=make_book(genre="Novel"), stars=stars)
    assert Book.objects.aggregate(Avg("reviews__stars")) == {"reviews__stars__avg": 2}
    assert [*Book.objects.values("genre").annotate(Count("pk")).order_by()] == [{"genre": "Novel", "pk__count": 2}]


def test_a_form_of_the_model_saves():
    form = modelform_factory(Book, fields=["title", "author", "year", "isbn", "genre"])(build_book(title="Emma"))
    assert form.is_valid()
    assert form.save().title == "Emma"


def test_on_commit_runs_after_a_change(django_capture_on_commit_callbacks):
    done = []
    with django_capture_on_commit_callbacks(execute=True) as callbacks, transaction.atomic():
        transaction.on_commit(lambda: done.append(make_book()))
    assert (len(callbacks) >= 1, done) == (True, [Book.objects.get()])


# The admin and templates


def test_the_page_of_a_book_has_an_inline(admin_client):
    book = make_book()
    address = reverse("admin:books_book_change", args=[book.pk])
    page = admin_client.get(address).content.decode()
    assert 'name="reviews-TOTAL_FORMS"' in page
    form = {"reviews-TOTAL_FORMS": 1, "reviews-INITIAL_FORMS": 0, "reviews-0-book": book.pk, "reviews-0-stars": 5}
    values = build_book(isbn=book.isbn, title="Emma")
    initial = {f"initial-{name}": getattr(book, name) for name in values}
    assert admin_client.post(address, values | initial | form).status_code == 302
    assert (Book.objects.get().title, Review.objects.get().stars) == ("Emma", 5)


def test_what_save_model_sets_is_saved(admin_client, monkeypatch):
    """On a book that is added, and on one that somebody else has changed meanwhile."""

    def save_model(self, request, obj, form, change):
        obj.genre = "Set"
        BookAdmin.save_model(self, request, obj, form, change)

    monkeypatch.setattr(type(admin.site.get_model_admin(Book)), "save_model", save_model)
    inline = {"reviews-TOTAL_FORMS": 0, "reviews-INITIAL_FORMS": 0}
    values = build_book(title="Emma", isbn="978-0-14-143951-8")
    assert admin_client.post(reverse("admin:books_book_add"), values | inline).status_code == 302
    book = Book.objects.get()
    assert (book.title, book.genre) == ("Emma", "Set")
    initial = {f"initial-{name}": getattr(book, name) for name in values}
    book.title, book.genre = "Persuasion", "Novel"
    book.save()
    typed = {**values, "genre": "Set", "year": 1816}
    address = reverse("admin:books_book_change", args=[book.pk])
    assert admin_client.post(address, typed | initial | inline).status_code == 302
    book.refresh_from_db()
    assert (book.title, book.genre, book.year) == ("Persuasion", "Set", 1816)


def test_a_book_is_chosen_and_changed_in_a_window_of_its_own(admin_client):
    book = make_book()
    page = admin_client.get(reverse("admin:books_book_changelist"), {"_popup": 1}).content.decode()
    assert f'data-popup-opener="{book.pk}"' in page
    values = {name: getattr(book, name) for name in build_book()}
    form = {**values, **{f"initial-{name}": value for name, value in values.items()}, "title": "Emma", "_popup": 1}
    inline = {"reviews-TOTAL_FORMS": 0, "reviews-INITIAL_FORMS": 0}
    address = reverse("admin:books_book_change", args=[book.pk])
    assert "popup_response.js" in admin_client.post(address, form | inline).content.decode()


def test_a_header_and_a_title_of_the_site_are_shown(admin_client, monkeypatch):
    monkeypatch.setattr(admin.site, "site_header", "Our shelves")
    monkeypatch.setattr(admin.site, "site_title", "Shelves")
    page = admin_client.get(reverse("admin:reviews_review_changelist")).content.decode()
    assert "<span>Our shelves</span>" in page
    assert "| Shelves</title>" in page
    # Another site has its own.
    assert "<span>Django administration</span>" in admin_client.get("/shop/").content.decode()


def test_a_window_stays_one_when_the_list_has_not_its_filter(admin_client):
    response = admin_client.get("/admin/books/book/?available=True&_to_field=id&_popup=1")
    assert response.url == "/admin/books/book/?_popup=1&_to_field=id"


def test_another_site_has_djangos_pages(admin_client):
    book = make_book()
    for address in ("", "books/book/", "books/book/add/", f"books/book/{book.pk}/change/", "reviews/review/"):
        assert admin_client.get(f"/shop/{address}").status_code == 200
    values = build_book(isbn=book.isbn, title="Emma")
    assert admin_client.post(f"/shop/books/book/{book.pk}/change/", values).status_code == 302
    assert Book.objects.get().title == "Emma"


def test_a_deletion_of_many_that_leaves_no_history_is_refused_on_a_page(admin_client, caplog):
    book = make_book()
    form = {"action": "delete_selected", "_selected_action": book.pk, "post": "yes"}
    admin_client.raise_request_exception = False
    page = admin_client.post("/shop/books/book/", form, headers={"Accept": "text/html"})
    assert (page.status_code, Book.objects.count()) == (409, 1)
    assert "Nothing was changed" in page.content.decode()
    assert "Call delete() of each book" in page.content.decode()
    assert "UnrecordedWrite" in caplog.text


def test_the_form_of_a_book_may_have_a_field_of_its_own(admin_client, monkeypatch):
    note = forms.CharField(required=False, help_text="Who gave it?")
    monkeypatch.setattr(BookAdmin, "form", type("NoteForm", (BookAdmin.form,), {"note": note}))
    sets = [("Book", {"fields": BookAdmin.fields}), ("Gift", {"fields": ["note"], "description": "As it came."})]
    monkeypatch.setattr(BookAdmin, "fieldsets", sets)
    book = make_book()
    values = {name: getattr(book, name) for name in build_book()}
    initial = {f"initial-{name}": value for name, value in values.items()}
    others = {"title": "Emma", "note": "A gift", "reviews-TOTAL_FORMS": 0, "reviews-INITIAL_FORMS": 0}
    address = reverse("admin:books_book_change", args=[book.pk])
    page = admin_client.get(address).content.decode()
    assert all(text in page for text in ("<h2>Gift</h2>", "As it came.", "Who gave it?"))
    assert admin_client.post(address, values | initial | others).status_code == 302
    assert Book.objects.get().title == "Emma"


def test_a_search_field_suggests_books_in_an_order(admin_client):
    make_book(), make_book(isbn="2")
    parameters = {"app_label": "reviews", "model_name": "review", "field_name": "book", "term": ""}
    response = admin_client.get("/admin/autocomplete/", parameters)
    assert [int(book["id"]) for book in response.json()["results"]] == [1, 2]


def test_a_partial_refresh_names_the_version_too():
    book = make_book()
    other = Book.objects.get()
    other.title = "Emma"
    other.save()
    book.refresh_from_db(fields=["title"])
    book.genre = "Satire"
    with pytest.raises(StaleBook):
        book.save()
    book.refresh_from_db(fields=["version"])
    book.save()
    assert Book.objects.values_list("title", "genre").get() == ("Emma", "Satire")


def test_a_statement_wrapper_may_come_before_the_connection():
    statements = []

    def keep(execute, sql, *arguments):
        statements.append(sql)
        return execute(sql, *arguments)

    other = connection.copy()
    with other.execute_wrapper(keep), other.cursor() as cursor:
        cursor.execute("SELECT 1")
    assert statements[-1:] == ["SELECT 1"]
    assert time_statement in other.execute_wrappers
    other.close()


def test_the_list_of_an_admin_is_edited_and_has_the_parts_of_djangos(admin_client):
    """Its hidden fields, its years, and what a template of an app adds to the tools."""
    review = Review.objects.create(book=make_book())
    address = reverse("admin:reviews_review_changelist")
    page = admin_client.get(address).content.decode()
    for name in ("form-INITIAL_FORMS", "form-0-id", "shelf", "_save"):
        assert f'name="{name}"' in page
    assert "created_at__day" in page
    assert "Print" in page
    form = {"form-TOTAL_FORMS": 1, "form-INITIAL_FORMS": 1, "form-0-id": review.pk, "form-0-stars": 5, "_save": "Save"}
    assert admin_client.post(address, form).status_code == 302
    assert Review.objects.get().stars == 5


def test_the_page_of_a_row_leads_to_the_site_and_saves_as_new(admin_client):
    review = Review.objects.create(book=make_book())
    page = admin_client.get(reverse("admin:reviews_review_change", args=[review.pk])).content.decode()
    [address] = re.findall(r'href="(/admin/r/\d+/\d+/)"', page)
    assert admin_client.get(address)["Location"].endswith(f"/api/v2/reviews/{review.pk}")
    assert 'name="_saveasnew"' in page


def test_a_template_of_an_earlier_app_overrides_ours(admin_client):
    assert "What is new on our shelves" in admin_client.get(reverse("admin:genres")).content.decode()


# Settings, commands and the rest


def test_a_command_of_an_app_changes_many_books():
    for _ in range(50):
        make_book(genre="Poem")
    call_command("rename_genre", "Poem", "Verse")
    assert Book.objects.filter(genre="Verse", version=2).count() == 50


def test_the_command_test_runs_tests_of_an_app(monkeypatch):
    monkeypatch.setattr(DiscoverRunner, "run_tests", lambda _, labels: labels != ("reviews.shelves",))
    call = suite_command.Command().run_from_argv
    call(["manage.py", "test", "reviews.shelves"])
    with pytest.raises(SystemExit):
        call(["manage.py", "test", "reviews"])


def test_a_system_check_of_an_app_is_run():
    assert [message.id for message in checks.run_checks(tags=["reviews"])] == ["reviews.I001"]


def test_a_router_keeps_our_rows_out_of_a_database_of_an_app(settings):
    Application.objects.all().delete()
    settings.DATABASE_ROUTERS = [SimpleNamespace(allow_migrate=lambda *_, **__: False)]
    emit_post_migrate_signal(verbosity=0, interactive=False, db=DEFAULT_DB_ALIAS)
    assert not Application.objects.exists()


def test_an_app_needs_no_migration_of_ours():
    call_command("makemigrations", "books", "oauth", "webhooks", "--check", "--dry-run", verbosity=0)


def test_a_logger_of_the_settings_has_its_level():
    assert logging.getLogger("reviews").getEffectiveLevel() == logging.ERROR


@pytest.mark.usefixtures("gettext")
def test_a_catalog_of_the_settings_overrides_our_texts(client, settings, tmp_path):
    folder = tmp_path / "de/LC_MESSAGES"
    folder.mkdir(parents=True)
    header = 'msgid ""\nmsgstr "Content-Type: text/plain; charset=UTF-8\\n"\n\n'
    (folder / "django.po").write_text(f'{header}msgid "Sign in"\nmsgstr "Hereinspaziert"\n')
    subprocess.run(["msgfmt", "-o", folder / "django.mo", folder / "django.po"], check=True, timeout=PROCESS_TIMEOUT)
    settings.LOCALE_PATHS = [tmp_path, *settings.LOCALE_PATHS]
    assert "Hereinspaziert" in client.get("/accounts/login", headers={"Accept-Language": "de"}).content.decode()


def test_a_scope_of_the_settings_is_offered(api):
    assert "reviews" in api.get("/.well-known/oauth-authorization-server").json()["scopes_supported"]
    assert "reviews" in get_scopes_backend().get_available_scopes()
