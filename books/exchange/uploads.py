"""Files that librarians upload, in parts: the worker that imports them may run on another machine."""

from collections.abc import Iterator
from datetime import datetime, timedelta
from hashlib import sha256
from io import BufferedReader, RawIOBase
from typing import Any, BinaryIO, cast

from django.db import transaction
from django.db.models import Max, QuerySet, Sum
from django.db.models.functions import Length
from django.utils.translation import gettext as _

from books.exchange.candidates import ImportRules
from books.exchange.formats.records import Table, UnreadableFile
from books.exchange.formats.registry import Format, find_format
from books.exchange.mapping import guess_mapping
from books.fields import to_naive_utc
from books.models import ColumnMapping, ImportChunk, ImportFile

CHUNK_BYTES = 512 * 1024
MAX_FILE_BYTES = 2 * 2**30
KEPT_DAYS = 7
MAX_NAME_LENGTH = 255


class WrongChunk(Exception):
    """The part is not the next one, or has another length than it must have."""


class OtherContent(Exception):
    """The part is there already, with another content: the parts are of different files."""


def begin_upload(user_id: int, name: str, size: int, fingerprint: str, now: datetime) -> ImportFile:
    """Returns the file to which the parts go: that of an upload of the same file that was cut off, or a new one.

    The fingerprint tells files apart by their content; without one the file is new. Raises UnreadableFile for an empty
    file and one that is too large, and for texts that no database stores.
    """
    if not 0 < size <= MAX_FILE_BYTES:
        raise UnreadableFile(_("The file is empty.") if size <= 0 else _("The file is too large."))
    if "\0" in name + fingerprint:
        raise UnreadableFile(_("The name of the file has a NUL character."))
    return find_unfinished(user_id, size, fingerprint) or ImportFile.objects.create(
        user_id=user_id, name=name[-MAX_NAME_LENGTH:], size=size, fingerprint=fingerprint, created_at=now
    )


def find_unfinished(user_id: int, size: int, fingerprint: str) -> ImportFile | None:
    """Returns the latest upload of this file that is not checked yet."""
    files = ImportFile.objects.filter(user=user_id, fingerprint=fingerprint, size=size, check_operation=None)
    return files.order_by("-pk").first() if fingerprint else None


def count_chunks(file: ImportFile) -> int:
    """Returns the number of parts that are there, which is the number of the next one."""
    last = file.chunks.aggregate(last=Max("number"))["last"]
    return 0 if last is None else last + 1


def add_chunk(file: ImportFile, number: int, content: bytes) -> None:
    """Adds the next part. One that is there already is not added again. Raises WrongChunk, OtherContent."""
    start = number * CHUNK_BYTES
    if len(content) != min(CHUNK_BYTES, file.size - start) or number > count_chunks(file):
        raise WrongChunk
    chunk, _is_new = ImportChunk.objects.get_or_create(file=file, number=number, defaults={"content": content})
    if bytes(chunk.content) != content:
        raise OtherContent


@transaction.atomic
def store_whole_file(user_id: int, name: str, stream: BinaryIO, size: int, now: datetime) -> ImportFile:
    """Stores a file that came in one request. Raises UnreadableFile."""
    file = begin_upload(user_id, name, size, "", now)
    for number, content in enumerate(iter(lambda: stream.read(CHUNK_BYTES), b"")):
        add_chunk(file, number, content)
    return file


def is_complete(file: ImportFile) -> bool:
    return bool(file.chunks.aggregate(size=Sum(Length("content")))["size"] == file.size)


class ChunkStream(RawIOBase):
    """The bytes of a file, of which one part is in memory."""

    def __init__(self, file: ImportFile) -> None:
        self.file = file
        self.position = 0
        self.number = -1
        self.chunk = b""

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return self.position

    def seek(self, offset: int, whence: int = 0) -> int:
        self.position = offset + (0, self.position, self.file.size)[whence]
        return self.position

    def readinto(self, buffer: Any) -> int:
        """Raises UnreadableFile."""
        number, start = divmod(self.position, CHUNK_BYTES)
        if number != self.number:
            self.number, self.chunk = number, self.read_chunk(number)
        piece = self.chunk[start : start + len(buffer)]
        buffer[: len(piece)] = piece
        self.position += len(piece)
        return len(piece)

    def read_chunk(self, number: int) -> bytes:
        """Returns a part, or nothing behind the end of the file. Raises UnreadableFile if a part is missing."""
        size = min(CHUNK_BYTES, self.file.size - number * CHUNK_BYTES)
        if size <= 0:
            return b""
        rows = ImportChunk.objects.filter(file=self.file, number=number).values_list("content", flat=True)
        content = bytes(rows.first() or b"")
        if len(content) != size:
            raise UnreadableFile(_("A part of the file is missing. Upload it again."))
        return content


def open_file(file: ImportFile) -> BinaryIO:
    return cast("BinaryIO", BufferedReader(ChunkStream(file)))


def read_table(file: ImportFile) -> tuple[Format, Table]:
    """Raises UnreadableFile."""
    stream = open_file(file)
    format = find_format(stream)
    table = format.read(stream, file.encoding)
    if any("\0" in column for column in table.columns):
        # The rules name the columns, and no PostgreSQL stores it.
        raise UnreadableFile(_("The name of a column has a NUL character."))
    return format, table


def hash_header(table: Table) -> str:
    return sha256("\n".join(table.columns).encode(errors="replace")).hexdigest()


def remember_mapping(table: Table, rules: ImportRules) -> None:
    ColumnMapping.objects.update_or_create(header=hash_header(table), defaults={"mapping": dict(rules.mapping)})


def find_mapping(table: Table) -> dict[str, str]:
    """Returns what was chosen for a file with the same header before, or what the names say."""
    remembered = ColumnMapping.objects.filter(header=hash_header(table)).first()
    return dict(remembered.mapping) if remembered else guess_mapping(table.columns)


def iter_expired(now: datetime) -> Iterator[tuple[str, QuerySet[Any]]]:
    """Yields the files that are older than KEPT_DAYS, after their parts."""
    files = ImportFile.objects.filter(created_at__lte=to_naive_utc(now - timedelta(days=KEPT_DAYS)))
    yield "parts of uploaded files", ImportChunk.objects.filter(file__in=files)
    yield "uploaded files", files
