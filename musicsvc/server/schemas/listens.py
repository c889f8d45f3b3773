"""Listens that players report as they do to ListenBrainz (docs/players.md).

The body is read element by element, so that no piece of the work is long: each listen has at most 10,240 bytes.
"""

import json
import re
from collections.abc import Callable, Collection, Iterator, Mapping
from typing import Annotated, Any, ClassVar, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field

from musicsvc.clock import SECOND
from musicsvc.errors import Malformed
from musicsvc.server.schemas.answers import Answer, Timestamp
from musicsvc.server.schemas.fields import Body, Id, no_nul
from musicsvc.server.schemas.reading import DECODER, EMPTY, NOT_JSON, REQUIRED, SURROGATE, repeated, shortened
from musicsvc.store.catalog import tracks
from musicsvc.store.listens import missing

MOST = 1000
MOST_BYTES = 10 * 1024 * 1024
LONGEST, MOST_VALUES = 10_240, 100  # bytes and values of a listen; members of a body
EARLIEST = 1_033_410_600  # Unix seconds; ListenBrainz accepts none before
AHEAD = 300
BLANKS = re.compile(r"[ \t\r\n]*+")


class _Reader:
    """Reads the JSON text of a submission: one value after the other, each at most 10,240 bytes."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 0

    def body(self) -> dict[str, Any]:
        """Return the object that the text is. Raises Malformed."""
        found: dict[str, Any] = {}
        if self._next() != "{":
            raise Malformed("The body is not a JSON object.")
        for name in self._members():
            if name in found:
                raise repeated(name)
            if len(found) == MOST_VALUES:  # a million of them would keep the thread that reads bodies for seconds
                raise Malformed(f"The body has more than {MOST_VALUES} members.")
            found[name] = list(self._payload()) if name == "payload" and self._next() == "[" else self._value(name)
        if self._next():
            raise Malformed(NOT_JSON)
        return found

    def _members(self) -> Iterator[str]:
        self._take("{")
        if self._next() == "}":
            self._at += 1
            return
        while True:
            name = self._value("a key")
            if not isinstance(name, str):
                raise Malformed(NOT_JSON)
            self._take(":")
            yield name
            if self._take(",}") == "}":
                return

    def _payload(self) -> Iterator[Any]:
        self._take("[")
        if self._next() == "]":
            self._at += 1
            return
        for index in range(MOST):
            name = f"payload.{index}"
            yield self._value(name)
            if self._take(",]") == "]":
                return
        raise Malformed(f"payload: Must have at most {MOST:,} listens.")

    def _value(self, name: str) -> Any:
        self._next()
        name = shortened(name)
        piece = self._text[self._at : self._at + LONGEST + 1]
        try:
            value, length = DECODER.raw_decode(piece)
        except (ValueError, RecursionError):
            longer = len(piece) > LONGEST
            raise Malformed(
                f"{name}: Has more than {LONGEST:,} bytes, or is no JSON." if longer else NOT_JSON
            ) from None
        written = piece[:length]
        if len(written.encode("utf-8", "replace")) > LONGEST:
            raise Malformed(f"{name}: Has more than {LONGEST:,} bytes.")
        if _has_many(value):
            raise Malformed(f"{name}: Has more than {MOST_VALUES} values.")
        if "\\u" in written and SURROGATE.search(json.dumps(value, ensure_ascii=False)):
            raise Malformed(f"{name}: Contains half of a UTF-16 surrogate pair.")
        self._at += length
        return value

    def _next(self) -> str:
        """Skip blanks. Return the next character, or an empty string at the end."""
        blanks = BLANKS.match(self._text, self._at)
        self._at = blanks.end() if blanks else self._at
        return self._text[self._at : self._at + 1]

    def _take(self, signs: str) -> str:
        sign = self._next()
        if not sign or sign not in signs:
            raise Malformed(NOT_JSON)
        self._at += 1
        return sign


def _has_many(value: Any) -> bool:
    """Return whether there are more than MOST_VALUES values in this one, which may be nested deeply."""
    open_, count = [value], 0
    while open_ and count <= MOST_VALUES:
        some, count = open_.pop(), count + 1
        open_ += some.values() if isinstance(some, dict) else some if isinstance(some, list) else ()
    return count > MOST_VALUES


def read_submission(text: str) -> Any:
    """Return the object that the JSON text of a submission is. Raises Malformed."""
    return _Reader(text).body()


def _needed(value: Any) -> Any:
    if not isinstance(value, str):
        raise ValueError("Must be a string.")  # noqa: TRY004 - pydantic reports ValueErrors
    if not (trimmed := no_nul(value).strip()):
        raise ValueError(EMPTY)
    return trimmed


def _optional(value: Any) -> Any:
    """Return the trimmed text of a value that no listen needs, or None."""
    return (value.strip() or None) if isinstance(value, str) and "\x00" not in value else None


def _seconds(value: Any) -> Any:
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not EARLIEST <= value < 1 << 40:
        raise ValueError(f"Must be Unix seconds, from {EARLIEST} on.")
    return int(value)


Needed = Annotated[str, BeforeValidator(_needed)]
Optional = Annotated[str | None, BeforeValidator(_optional)]


class About(BaseModel):
    """Details that a player sends of a track, and of itself."""

    model_config = ConfigDict(extra="ignore", frozen=True)

    isrc: Optional = None
    recording_mbid: Optional = None
    media_player: Optional = None
    submission_client: Optional = None
    artist_names: Annotated[list[Any], BeforeValidator(lambda sent: sent if isinstance(sent, list) else [])] = []


class Metadata(BaseModel):
    """The names of a track that was heard."""

    model_config = ConfigDict(extra="ignore", frozen=True)

    artist_name: Needed
    track_name: Needed
    release_name: Optional = None
    additional_info: Annotated[About, BeforeValidator(lambda sent: sent if isinstance(sent, dict) else {})] = About()

    @property
    def artists(self) -> str:
        """The artists, with semicolons between those that the player lists if it has joined them by commas."""
        names = [*map(str, self.additional_info.artist_names)]
        return "; ".join(names) if ", ".join(names) == self.artist_name else self.artist_name


class ListenIn(BaseModel):
    """A listen."""

    model_config = ConfigDict(extra="ignore", frozen=True)

    listened_at: Annotated[int | None, BeforeValidator(_seconds)] = None
    track_metadata: Metadata


class ListensIn(Body):
    """A submission of listens, of one kind. If one is malformed, none of them is stored."""

    most_bytes: ClassVar[int] = MOST_BYTES
    any_type: ClassVar[bool] = True
    read: ClassVar[Callable[[str], Any] | None] = staticmethod(read_submission)

    listen_type: Literal["single", "playing_now", "import"]
    payload: Annotated[list[ListenIn], Field(min_length=1)]

    @classmethod
    def check_together(cls, sent: Mapping[str, Any], faults: Collection[str], context: Mapping[str, Any]) -> Any:
        """Return messages for a payload that does not fit its kind, and for times that are missing or in the future."""
        kind, payload = sent.get("listen_type"), sent.get("payload")
        if faults or not isinstance(payload, list):
            return {}
        if kind != "import" and len(payload) != 1:
            return {"payload": f"Must have exactly one listen, as listen_type is {kind}."}
        latest = context["now"] / SECOND + AHEAD
        found = (
            (f"payload.{index}.listened_at", _time_fault(kind, each, latest)) for index, each in enumerate(payload)
        )
        return {place: fault for place, fault in found if fault}


def _time_fault(kind: Any, listen: Any, latest: float) -> str | None:
    at = listen.get("listened_at")
    if kind == "playing_now":
        return None if at is None else "Must be absent, as listen_type is playing_now."
    if at is None:
        return REQUIRED
    return "Is more than 5 minutes in the future." if at > latest else None


class NamedIn(Body):
    """The track that pending listens name."""

    references: ClassVar = {"track_id": tracks.missing}

    track_id: Id


class PendingListens(Answer):
    """The listens of one artist and title that match no track (yet)."""

    id: int
    artist: str = Field(examples=["Ann Example"])
    track: str = Field(examples=["Morning"])
    release: str | None = Field(examples=["First Songs"])
    listens: int
    first_at: Timestamp
    last_at: Timestamp


class MissingTrack(Answer):
    """A title that people hear, and that the catalog lacks."""

    artist: str = Field(examples=["Ann Example"])
    track: str = Field(examples=["Evening"])
    release: str | None = Field(examples=["First Songs"])
    listens: int = Field(description="Listens of all accounts that wait for the track.", examples=[12])


class MissingTracks(Answer):
    """Titles by artists that the caller manages, which at least five accounts heard, the most heard first."""

    tracks: list[MissingTrack] = Field(max_length=missing.MOST)
