"""Receive a form with a file, which is written to the folder of the account while it arrives."""

import asyncio
import re
import secrets
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import IO, Any

from aiohttp import hdrs
from aiohttp.web import BaseRequest

from musicsvc.errors import Conflict, Malformed, TooLarge, Unavailable, UnsupportedMedia
from musicsvc.server.browsers import Browser, ExpiredForm
from musicsvc.server.request import parameters
from musicsvc.server.request.bodies import receiving
from musicsvc.server.request.multipart import NOT_VALID, FormData, Part
from musicsvc.server.schemas.fields import Body
from musicsvc.server.schemas.pages.form import TOKEN_FIELD
from musicsvc.server.schemas.reading import ParsedBody, check
from musicsvc.server.shapes.pages import Received
from musicsvc.store.engine.store import Store
from musicsvc.store.importing.tasks import queue
from musicsvc.store.importing.tasks.uploads import Place, tidy

MOST_BYTES = 32 * 1024 * 1024
MOST_OTHER = 64 * 1024  # bytes of the other fields, and of the heads of all parts
WHOLE_SECONDS = 600.0  # at 32 MiB, half a megabit per second
PAUSES = (0.05, 0.2, 0.5)  # seconds before the folder of an account is tried again
PIECE = 256 * 1024
FILE = "file"  # the name of the field
LONGEST_NAME = 200
SUFFIXES = re.compile(r"(\.[a-z0-9]{1,8}){1,2}$", re.ASCII)
TOO_LARGE = "The file is larger than 32 MiB. Pack it with gzip, split it, or import it on the server: musicsvc import."
NO_FILE, EMPTY = "Choose a file.", "The file is empty."
NO_SPACE = "The file cannot be stored at the moment."


@dataclass(frozen=True, slots=True)
class Uploads:
    """Receives forms with a file. `pause`: the most seconds without a piece of the body."""

    store: Store
    place: Place
    pause: float

    @asynccontextmanager
    async def received(
        self, request: BaseRequest, schema: type[Body], context: Mapping[str, Any], browser: Browser, user: int
    ) -> AsyncIterator[tuple[ParsedBody, Received | None]]:
        """Receive the form and its file. After the `with` block, the file is deleted unless the queue has it.

        Raises Conflict while another file of the account is being received or read. A form without a valid token is
        left unread.
        """
        form = FormData(_boundary(request))
        if (request.content_length or 0) > MOST_BYTES + MOST_OTHER:
            raise TooLarge(TOO_LARGE)
        async with AsyncExitStack() as stack:
            try:
                folder = await self._lock(stack, user)
                stack.push_async_callback(asyncio.to_thread, self._tidy, folder, user)
                upload = _Upload(folder, browser)
                try:
                    await self._read(request, form, upload)
                finally:
                    await asyncio.to_thread(upload.close)
            except OSError as error:
                here = f"An uploaded file cannot be stored in {self.place.folder}: {error.strerror}."
                raise Unavailable(NO_SPACE, here) from None
            yield upload.result(schema, context)

    async def _lock(self, stack: AsyncExitStack, user: int) -> Path:
        """Lock the folder of the account until the end of `stack`. Raises Conflict if it stays in use."""
        for pause in PAUSES:  # what has ended keeps the folder for a moment, while the page shows its end
            with suppress(Conflict):
                return await asyncio.to_thread(stack.enter_context, self.place.locked(user))
            await asyncio.sleep(pause)
        return await asyncio.to_thread(stack.enter_context, self.place.locked(user))

    def _tidy(self, folder: Path, user: int) -> None:
        tidy(folder, self.store.read(partial(queue.files_of, user, self.place.name)).result())

    async def _read(self, request: BaseRequest, form: FormData, upload: "_Upload") -> None:
        async with receiving(request, "file", WHOLE_SECONDS):
            while piece := await self._piece(request):
                if form.ended:
                    upload.count(len(piece))
                for found in form.feed(piece):
                    upload.take(found)
                if upload.is_refused:
                    return
                if upload.must_write:
                    await asyncio.to_thread(upload.write)
        if not form.ended:
            raise Malformed(NOT_VALID)

    async def _piece(self, request: BaseRequest) -> bytes:
        async with asyncio.timeout(self.pause):
            return await request.content.readany()


class _Upload:
    """The fields and the file of a form that is being received."""

    def __init__(self, folder: Path, browser: Browser) -> None:
        self._folder = folder
        self._browser = browser
        self._fields: dict[str, bytearray] = {}
        self._part: Part | None = None
        self._file: IO[bytes] | None = None
        self._name = ""
        self._stored_as = ""
        self._size = self._other = 0
        self._pending = bytearray()
        self.is_refused = False

    def take(self, found: Part | bytes) -> None:
        """Take the head of a part or a piece of its content. Raises Malformed or TooLarge."""
        if isinstance(found, Part):
            self._begin(found)
        elif self._part is not None and self._part.name == FILE:
            self._size += len(found)
            if self._size > MOST_BYTES:
                raise TooLarge(TOO_LARGE)
            if self._stored_as:
                self._pending += found
        else:
            self.count(len(found))
            if self._part is not None:
                self._fields[self._part.name] += found

    def _begin(self, part: Part) -> None:
        self.count(part.size)
        if self._stored_as or part.name in self._fields:
            raise Malformed("The file must be the last field of the form, and no field may be repeated.")
        self._part = part
        if part.name != FILE:
            self._fields[part.name] = bytearray()
            return
        try:
            self._browser.require_own_form(self._fields.get(TOKEN_FIELD, bytearray()).decode(errors="replace"))
        except ExpiredForm:
            self.is_refused = True  # nothing is written for other sites
            return
        self._name = _name(part.filename or "")
        suffixes = SUFFIXES.search(self._name.lower())  # they say the format
        self._stored_as = f"{secrets.token_hex(8)}{suffixes[0] if suffixes else ''}"

    def count(self, size: int) -> None:
        """Count bytes outside of the file. Raises TooLarge."""
        self._other += size
        if self._other > MOST_OTHER:
            raise TooLarge("The form is too large.")

    @property
    def must_write(self) -> bool:
        """Whether the file is to be created, or much has arrived of it."""
        return bool(self._stored_as and self._file is None) or len(self._pending) >= PIECE

    def write(self) -> None:
        """Write what has arrived of the file. Call it on a thread: the disk may be slow."""
        if self._stored_as:
            if self._file is None:
                self._file = (self._folder / self._stored_as).open("xb")
            self._file.write(self._pending)
        self._pending.clear()

    def close(self) -> None:
        try:
            self.write()
        finally:
            if self._file is not None:
                self._file.close()

    def result(self, schema: type[Body], context: Mapping[str, Any]) -> tuple[ParsedBody, Received | None]:
        """Return the checked form, and the file if all is valid. Raises Malformed if a field is not in UTF-8."""
        try:
            sent = {name: value.decode().replace("\r\n", "\n") for name, value in self._fields.items()}
        except UnicodeDecodeError:
            raise Malformed(NOT_VALID) from None
        model, errors = check(schema, {name: value for name, value in sent.items() if value}, context)
        if not self._name:
            errors = errors | {FILE: NO_FILE}
        elif not self._size:
            errors = errors | {FILE: EMPTY}
        parsed = ParsedBody(sent, model, errors, None)
        return parsed, None if errors else Received(self._name, self._stored_as)


def _boundary(request: BaseRequest) -> str:
    if request.headers.get(hdrs.CONTENT_ENCODING, "identity").lower() != "identity":
        raise UnsupportedMedia("Send the form without Content-Encoding.")
    kind, found = parameters.parse(request.headers.get(hdrs.CONTENT_TYPE, ""))
    if kind != "multipart/form-data" or "boundary" not in found:
        raise UnsupportedMedia("Send the form with the file, with Content-Type: multipart/form-data.")
    return found["boundary"]


def _name(sent: str) -> str:
    """Return the name of a file as its user knows it, without folders and control characters."""
    name = re.split(r"[/\\]", sent)[-1]
    return "".join(char for char in name if char.isprintable())[-LONGEST_NAME:].strip()
