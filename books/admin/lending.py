"""The scan box, and the page that lends and takes back books by scanning.

The box opens the only match, numbers several matches, and offers to add a book if there is none.

The page first looks up a code and then asks for a state of that book. This request names the state and the version that
the page has seen. If the response is lost and the request is sent again, nothing changes twice.
"""

from typing import Any, NamedTuple
from urllib.parse import urlencode

from django import forms
from django.contrib import messages
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect, JsonResponse
from django.urls import reverse
from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import gettext_noop
from django.views.decorators.http import require_GET, require_POST

from books.admin.descriptions import AVAILABLE, LENT_STATE, STATES, name_state
from books.admin.list.filters import list_similar_searches
from books.admin.views import find_librarian, render_page, report_rejected
from books.book.isbn import hyphenate_isbn
from books.book_values import BookValues
from books.history.actors import ActorRef
from books.history.states import MAX_VERSION
from books.models import Book, Change
from books.permissions import ADD_BOOK
from books.search.matches import find_by_code, find_first
from books.search.quality import EXPLANATIONS
from books.search.scans import Scan, ScanKind, read_scan
from books.writing import changes
from library_site.db.integers import BIGINT_MAX
from library_site.http.api_errors import APIError

# One match for each digit key.
MAX_NUMBERED_BOOKS = 9
# If more books share a code, they are not listed.
MAX_NAMED_BOOKS = 5


class ScanResult(NamedTuple):
    """The book with this code or None, a message about the code, and the address of the form that adds a book, None if
    none should be added.
    """

    book: Book | None
    message: str = ""
    add_address: str | None = None


def show_scan(request: HttpRequest) -> HttpResponse:
    scan = read_scan(request.GET.get("code", ""))
    is_scanned = scan.kind is not ScanKind.NOTHING
    # One more than the digit keys tells whether there are more.
    books = find_first(Book.objects.all(), scan, MAX_NUMBERED_BOOKS + 1) if is_scanned else []
    if scan.layout:
        messages.warning(request, explain_layout(scan.layout))
    if len(books) == 1:
        return HttpResponseRedirect(reverse("admin:books_book_change", args=[books[0].pk]))
    is_absent = is_scanned and not books
    return render_page(
        request,
        "scan",
        _("Scan or find a book"),
        scan=scan,
        books=books[:MAX_NUMBERED_BOOKS],
        similar_searches=list_similar_searches(scan) if is_absent else [],
        absence=explain_absence(scan, request.user.has_perm(ADD_BOOK)) if is_absent else None,
        has_more=len(books) > MAX_NUMBERED_BOOKS,
        list_address=reverse("admin:books_book_changelist", query={"q": scan.text}),
    )


def explain_absence(scan: Scan, may_add: bool) -> ScanResult:
    if scan.kind in EXPLANATIONS:
        return ScanResult(None, str(EXPLANATIONS[scan.kind]))
    if scan.kind is ScanKind.ISBN:
        isbn = hyphenate_isbn(scan.isbn13)
        explanation = _("No book has the ISBN %(isbn)s.") % {"isbn": isbn}
        return ScanResult(None, explanation, build_add_address(isbn=isbn) if may_add else None)
    if scan.kind is ScanKind.ID:
        return ScanResult(None, _("No book has the ID %(number)d.") % {"number": scan.number})
    return ScanResult(
        None,
        _("No book has all these words in title, author and genre."),
        build_add_address(title=scan.text) if may_add else None,
    )


def explain_layout(layout: str) -> str:
    message = _(
        "The code arrived as other characters: this computer has the keyboard layout “%(layout)s”, and the scanner is"
        " set to another one. The code was read all the same."
    )
    return message % {"layout": _(layout)}


def build_add_address(**values: Any) -> str:
    return reverse("admin:books_book_add", query=values)


class BookChanged(APIError):
    status_code = 412
    default_detail = gettext_noop("The book was changed since it was looked up")


class StateForm(forms.Form):
    """The new state, the version that the page showed, and whether the request may be a repetition."""

    book = forms.IntegerField(min_value=-BIGINT_MAX, max_value=BIGINT_MAX)
    version = forms.IntegerField(min_value=1, max_value=MAX_VERSION - 1)
    state = forms.ChoiceField(choices=list(STATES.items()))
    repeated = forms.BooleanField(required=False)


@require_GET
def find_scanned(request: HttpRequest) -> HttpResponse:
    """Returns the only book with this code, or the reason why there is none."""
    match = find_match(request, request.GET.get("code", ""))
    book = match.book and {
        "id": match.book.pk,
        "title": match.book.title,
        "address": reverse("admin:books_book_change", args=[match.book.pk]),
        "state": name_state(match.book.available),
        "version": match.book.version,
    }
    return JsonResponse({"book": book, "message": match.message, "add": match.add_address})


@require_POST
def change_state(request: HttpRequest) -> HttpResponse:
    """Lends or returns a book, and returns its new version. A repeated request gets the same response."""
    form = StateForm(request.POST)
    if not form.is_valid():
        return JsonResponse({"errors": form.errors}, status=400)
    try:
        version = set_state(find_librarian(request), **form.cleaned_data)
    except APIError as refusal:
        return JsonResponse({"message": _(refusal.default_detail)}, status=refusal.status_code)
    return JsonResponse({"version": version})


def set_state(actor: ActorRef, book: int, version: int, state: str, repeated: bool = False) -> int:
    """Returns the version of the book with this state. Raises BookChanged, BookNotFound, ConcurrentChange.

    A repeated request gets the version that the first one returned.
    """

    def require_version(row: BookValues) -> None:
        if row.version != version:
            raise BookChanged

    available = state == AVAILABLE
    try:
        return changes.change_book(book, {"available": available}, require_version, actor, timezone.now()).version
    except BookChanged:
        if not repeated or find_own_values(actor, book, version + 1).get("available") is not available:
            raise
        return version + 1


def find_own_values(actor: ActorRef, book: int, version: int) -> dict[str, Any]:
    """Returns the values that this user gave the book at this version, according to the history."""
    change = Change.objects.filter(book_id=book, version=version, actor_id=actor.id).first()
    return change.after or {} if change else {}


def find_match(request: HttpRequest, code: str) -> ScanResult:
    scan = read_scan(code)
    books = find_by_code(scan, MAX_NAMED_BOOKS)
    if not books:
        return explain_no_match(scan, may_add=request.user.has_perm(ADD_BOOK))
    if len(books) > 1:
        names = "; ".join(f"#{book.pk} {book.title} ({STATES[name_state(book.available)]})" for book in books)
        message = _("Several books have this code: {names}. Type the ID of the right one with its #.")
        return ScanResult(None, message.format(names=names))
    return ScanResult(books[0], explain_layout(scan.layout) if scan.layout else "")


def explain_no_match(scan: Scan, may_add: bool) -> ScanResult:
    if scan.kind is ScanKind.NOTHING:
        return ScanResult(None, _("Scan a code first."))
    if scan.kind is ScanKind.WORDS:
        return ScanResult(None, _("Words lend no book. Scan its code, or type its ID like #17."))
    # A title is no code, so only an unknown ISBN leads to the form that adds a book.
    return explain_absence(scan, may_add)


def show_lending(request: HttpRequest) -> HttpResponse:
    """Shows the page. Without a script its form works, too: a POST renders the page again."""
    if request.method == "POST":
        change = change_plainly(request) if "book" in request.POST else scan_plainly(request)
        return HttpResponseRedirect(f"{reverse('admin:lend')}?{urlencode(change)}")
    state = request.GET.get("state", "")
    return render_page(
        request,
        "lend",
        _("Lend and take back"),
        state=state if state in STATES else LENT_STATE,
        last=find_own_change(request),
    )


def scan_plainly(request: HttpRequest) -> dict[str, Any]:
    """Processes a scan, stores a message about it, and returns the query of the next page."""
    state = request.POST.get("state", "")
    if state not in STATES:
        messages.error(request, _("Nothing was changed: choose whether to lend or to take back."))
        return {}
    match = find_match(request, request.POST.get("code", ""))
    if match.message:
        messages.warning(request, match.message)
    if match.book is None:
        return {"state": state}
    if name_state(match.book.available) == state:
        already = _("“{title}” is {state} already.").format(title=match.book.title, state=STATES[state])
        messages.warning(request, already)
        return {"state": state}
    return {"state": state, **report_change(request, match.book.pk, match.book.version, state)}


def change_plainly(request: HttpRequest) -> dict[str, Any]:
    """Undoes a change and returns the query of the next page, which stays in the same mode."""
    form = StateForm(request.POST)
    if not form.is_valid():
        messages.error(request, _("Nothing was changed: this is not known."))
        return {}
    undone = form.cleaned_data
    previous_state = LENT_STATE if undone["state"] == AVAILABLE else AVAILABLE
    return {"state": previous_state, **report_change(request, undone["book"], undone["version"], undone["state"])}


def report_change(request: HttpRequest, book: int, version: int, state: str) -> dict[str, int]:
    """Sets the state of the book. Returns the parameters that identify the change, empty if it was rejected."""
    try:
        new_version = set_state(find_librarian(request), book, version, state)
    except APIError as refusal:
        report_rejected(request, refusal)
        return {}
    return {"book": book, "version": new_version}


@require_POST
def lend_shown_book(request: HttpRequest, book_id: int) -> HttpResponse:
    form = StateForm({**request.POST.dict(), "book": book_id})
    if not form.is_valid():
        messages.error(request, _("Nothing was changed: this is not known."))
    elif report_change(request, book_id, form.cleaned_data["version"], form.cleaned_data["state"]):
        is_lent = form.cleaned_data["state"] == LENT_STATE
        messages.success(request, _("The book is lent.") if is_lent else _("The book is taken back."))
    address = reverse("admin:books_book_change", args=[book_id])
    return HttpResponseRedirect(f"{address}?{request.GET.urlencode()}".rstrip("?"))


def find_own_change(request: HttpRequest) -> dict[str, Any] | None:
    """Returns the change named in the address, if this user made it."""
    form = StateForm({"state": LENT_STATE, **request.GET.dict()})
    if not form.is_valid():
        return None
    pk, version = form.cleaned_data["book"], form.cleaned_data["version"]
    book = Book.objects.filter(pk=pk).first()
    available = find_own_values(find_librarian(request), pk, version).get("available")
    if book is None or available is None:
        return None
    return {"book": book, "version": version, "state": name_state(available), "old_state": name_state(not available)}
