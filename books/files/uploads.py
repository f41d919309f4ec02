"""Files that librarians upload. They are stored in chunks, because the import may run on another machine."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from datetime import datetime, timedelta
from functools import partial
from hashlib import sha256
from typing import Any, BinaryIO

from django.conf import settings
from django.contrib.auth.models import User
from django.db import transaction
from django.db.models import Count, Max, QuerySet, Sum
from django.db.models.functions import Length
from django.utils.translation import gettext as _

from books.files.columns.tables import guess_mapping
from books.files.formats.encodings import show_storable
from books.files.formats.records import UnreadableFile, format_count
from books.files.reader.client import StoredFile
from books.models import ColumnMapping, ImportChunk, ImportFile
from library_site.jobs.expiry import delete_by_kind
from library_site.jobs.worker import CONNECTION_ERRORS

CHUNK_BYTES = 512 * 1024
MAX_UPLOAD_BYTES = 2 * 2**30
KEPT_DAYS = 7
MAX_NAME_LENGTH = 255


class WrongChunk(Exception):
    """The chunk is not the next one, or has the wrong length."""


class OtherContent(Exception):
    """The chunk is already stored with another content, so it belongs to a different file."""


@transaction.atomic
def begin_upload(user_id: int, name: str, size: int, fingerprint: str, now: datetime) -> ImportFile:
    """Returns the file that receives the chunks: an interrupted upload of the same file, or a new one.

    The fingerprint identifies a file by its content; without one the file is new. Raises UnreadableFile for a file that
    is empty, too large or beyond the user's quota, and for texts that a database cannot store.
    """
    if not 0 < size <= MAX_UPLOAD_BYTES:
        raise UnreadableFile(_("The file is empty.") if size <= 0 else _("The file is too large."))
    if "\0" in name + fingerprint:
        raise UnreadableFile(_("The name of the file has a character that cannot be stored."))
    unchecked = ImportFile.objects.filter(user=user_id, fingerprint=fingerprint, size=size, check_operation=None)
    if fingerprint and (unfinished := unchecked.order_by("-pk").first()):
        return unfinished
    require_quota(user_id, size)
    return ImportFile.objects.create(
        user_id=user_id, name=name[-MAX_NAME_LENGTH:], size=size, fingerprint=fingerprint, created_at=now
    )


def require_quota(user_id: int, size: int) -> None:
    """Raises UnreadableFile. Uploads of a user wait for each other, so that two cannot use the same quota."""
    User.objects.select_for_update(no_key=True).get(pk=user_id)
    sums = ImportFile.objects.filter(user=user_id).aggregate(count=Count("pk"), size=Sum("size", default=0))
    if sums["count"] >= settings.UPLOAD_MAX_FILES:
        limit = {"count": format_count(settings.UPLOAD_MAX_FILES)}
        raise UnreadableFile(_("You have %(count)s files here, and no more fit. Delete some of them.") % limit)
    if sums["size"] + size > settings.UPLOAD_MAX_MEGABYTES * 10**6:
        limit = {"count": format_count(settings.UPLOAD_MAX_MEGABYTES)}
        raise UnreadableFile(_("Your files here may have %(count)s MB together. Delete some of them.") % limit)


def count_chunks(file: ImportFile) -> int:
    """Returns the number of stored chunks, which is the number of the next one."""
    last = file.chunks.aggregate(last=Max("number"))["last"]
    return 0 if last is None else last + 1


def add_chunk(file: ImportFile, number: int, content: bytes) -> None:
    """Adds the next chunk. One that is already stored is not added again. Raises WrongChunk, OtherContent."""
    start = number * CHUNK_BYTES
    if len(content) != min(CHUNK_BYTES, file.size - start) or number > count_chunks(file):
        raise WrongChunk
    chunk, _is_new = ImportChunk.objects.get_or_create(file=file, number=number, defaults={"content": content})
    if bytes(chunk.content) != content:
        raise OtherContent


@transaction.atomic
def store_whole_file(user_id: int, name: str, stream: BinaryIO, size: int, now: datetime) -> ImportFile:
    """Stores a file from a single request. Raises UnreadableFile."""
    file = begin_upload(user_id, name, size, "", now)
    for number, content in enumerate(iter(lambda: stream.read(CHUNK_BYTES), b"")):
        add_chunk(file, number, content)
    return file


@contextmanager
def store_stream(name: str, stream: BinaryIO, now: datetime) -> Iterator[ImportFile]:
    """Stores a command's file of any size while the block runs. After a crash, the file expires like others."""
    file = ImportFile.objects.create(name=show_storable(name)[-MAX_NAME_LENGTH:], size=0, created_at=now)
    try:
        for number, content in enumerate(iter(lambda: stream.read(CHUNK_BYTES), b"")):
            ImportChunk.objects.create(file=file, number=number, content=content)
            file.size += len(content)
        file.save(update_fields=["size"])
        yield file
    finally:
        with suppress(*CONNECTION_ERRORS):
            delete_by_kind(iter_file_rows(ImportFile.objects.filter(pk=file.pk)))


def is_complete(file: ImportFile) -> bool:
    """Adds up the chunks only when the last one is stored."""
    if count_chunks(file) * CHUNK_BYTES < file.size:
        return False
    return bool(file.chunks.aggregate(size=Sum(Length("content")))["size"] == file.size)


def read_chunk(file: ImportFile, number: int) -> bytes:
    """Returns a chunk; empty after the end of the file. Raises UnreadableFile if one is missing."""
    size = min(CHUNK_BYTES, file.size - number * CHUNK_BYTES)
    if size <= 0:
        return b""
    rows = ImportChunk.objects.filter(file=file, number=number).values_list("content", flat=True)
    content = bytes(rows.first() or b"")
    if len(content) != size:
        raise UnreadableFile(_("A part of the file is missing. Upload it again."))
    return content


def build_source(file: ImportFile, encoding: str, **options: Any) -> StoredFile:
    return StoredFile(file.size, encoding, partial(read_chunk, file), name=file.name, **options)


def hash_header(columns: Sequence[str], user_pk: int | None) -> str:
    """Returns the key for this user's mapping of these columns."""
    return sha256("\n".join([f"user {user_pk}", *columns]).encode(errors="replace")).hexdigest()


def remember_mapping(columns: Sequence[str], mapping: Mapping[str, str], user_pk: int | None) -> None:
    """Stores the column of each place that was chosen, "" for places that the file does not contain."""
    header = hash_header(columns, user_pk)
    ColumnMapping.objects.update_or_create(header=header, defaults={"mapping": dict(mapping)})


def get_mapping(columns: Sequence[str], user_pk: int | None) -> dict[str, str]:
    """Returns what this user chose for a file with the same header. For other places it guesses by name."""
    stored_mapping = ColumnMapping.objects.filter(header=hash_header(columns, user_pk)).first()
    return {**guess_mapping(columns), **(stored_mapping.mapping if stored_mapping else {})}


def iter_expired(now: datetime) -> Iterator[tuple[str, QuerySet[Any]]]:
    """Yields the files that are older than KEPT_DAYS, after their chunks."""
    yield from iter_file_rows(ImportFile.objects.filter(created_at__lte=now - timedelta(days=KEPT_DAYS)))


def iter_file_rows(files: QuerySet[ImportFile]) -> Iterator[tuple[str, QuerySet[Any]]]:
    """Yields the files after their chunks."""
    yield "parts of uploaded files", ImportChunk.objects.filter(file__in=files)
    yield "uploaded files", files
