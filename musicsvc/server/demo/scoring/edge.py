"""The point of clients that work with the extreme values of the edge world."""

from collections.abc import Hashable, Iterator, Mapping
from typing import Any

from cachetools import LRUCache

from musicsvc.server.demo.journal import Entry
from musicsvc.server.demo.scoring import mangling
from musicsvc.server.demo.scoring.observed import SAFE, Observed, members
from musicsvc.server.demo.scoring.point import Point

EDGE = "edge"
MOST_VALUES = 20_000
MOST_ROWS = 5_000
LONGEST = 300  # characters of a text that is remembered
SHOWN = 40
BAD_REQUEST, FORBIDDEN = 400, 403
WRITING = {"POST", "PUT", "PATCH"}


class SurvivesEdgeValues(Point):
    """A client keeps values of the edge world as they are.

    It asks for ids as it got them, not cut to 32 bits or to a float, nor for null. It sends texts back as it got them:
    not cut, not normalized, with all characters, and null as null. Its bodies are valid JSON in UTF-8. It asks for no
    page after a last one that is full. After a 403 it does not write again with a token that can only read. What a
    client never got from the service is not evaluated.
    """

    name = "edge"
    title = "Survives the edge world"
    remedy = "Keep ids in 64 bits or as text, texts as they are, and null as null; trust last_page."
    occasion = "Start the demo with --world edge, and let the client read objects and ask for one by its id."

    def __init__(self, world: str) -> None:
        super().__init__()
        self._evaluates = world == EDGE
        # They outlast `forget`: what a client got, it may still have.
        self._ids: LRUCache[Hashable, None] = LRUCache(MOST_VALUES)
        self._mangled_ids: LRUCache[Hashable, int] = LRUCache(MOST_VALUES)
        self._texts: LRUCache[Hashable, None] = LRUCache(MOST_VALUES)
        self._mangled_texts: LRUCache[Hashable, str] = LRUCache(MOST_VALUES)
        self._rows: LRUCache[Hashable, Mapping[str, Any]] = LRUCache(MOST_ROWS)
        self._given: LRUCache[str, None] = LRUCache(MOST_ROWS)  # clients that have got a row
        self._read_only: LRUCache[str, Entry] = LRUCache(MOST_ROWS)

    def see(self, seen: Observed) -> None:
        if not self._evaluates or seen.entry.route is None:
            return
        for text in self._faults(seen):
            self.accuse(text, seen)
        self._see_scope(seen)
        if seen.succeeded:
            self.passed |= any((seen.client, value) in self._ids for value in seen.values_of_path)
            self._remember(seen)

    def _faults(self, seen: Observed) -> Iterator[str]:
        yield from self._faults_of_path(seen)
        if (page := seen.page) is not None and page.follows_full_one:
            yield f"asked for page {page.current_page} after the last one, which is full"
        if seen.entry.method not in WRITING or seen.client not in self._given:
            return
        if seen.entry.status == BAD_REQUEST and seen.is_malformed:
            yield "sent a body that is not valid JSON in UTF-8"
        elif isinstance(seen.body, dict):
            yield from self._faults_of_values(seen)
            yield from self._faults_of_row(seen)

    def _faults_of_path(self, seen: Observed) -> Iterator[str]:
        for value in seen.values_of_path:
            if mangling.is_no_id(value):
                yield f"asked for the id {value[:SHOWN]}"
            elif value.isdecimal() and (was := self._find_id(seen.client, int(value[:SHOWN]))) is not None:
                yield f"asked for the id {value[:SHOWN]}, which is what 32 bits keep of {was}"

    def _find_id(self, client: str, number: float) -> int | None:
        """Return the id that was given to the client and has become this number."""
        if (client, str(number)) in self._ids:
            return None
        if number in mangling.CLAMPED and client in self._given:
            return self._mangled_ids.get((client, "any"))
        return self._mangled_ids.get((client, int(number))) if abs(number) < 2**64 else None

    def _faults_of_values(self, seen: Observed) -> Iterator[str]:
        for _, value in members(seen.body):
            if isinstance(value, str):
                key = (seen.client, value)
                if key in self._texts:
                    continue
                if (was := self._mangled_texts.get(key)) is not None:
                    yield f"sent a text that is not as it was: {was}"
                elif mangling.REPLACEMENT in value:
                    yield "sent a text with the replacement character U+FFFD"
            elif _is_number(value) and (found := self._find_id(seen.client, value)) is not None:
                yield f"sent the id {value}, which is what 32 bits keep of {found}"

    def _faults_of_row(self, seen: Observed) -> Iterator[str]:
        """Yield the fields of an object that were damaged between reading and writing it."""
        named = seen.values_of_path[-1:] or [str(seen.body.get("id"))]
        row = self._rows.get((seen.client, _noun(seen), *named), {})
        for name, was in row.items():
            sent = seen.body.get(name, was)
            if sent == was and isinstance(sent, str) == isinstance(was, str):
                continue
            if was is None and mangling.is_null(sent):
                yield f"sent {name} as the text {sent!r}; it was null"
            elif isinstance(was, str) and not isinstance(sent, str) and (mangling.is_null(was) or sent is not None):
                yield f"sent {name} as {sent!r:.{SHOWN}}; it was the text {was!r:.{SHOWN}}"
            elif isinstance(was, str) and isinstance(sent, str) and mangling.is_cut(sent, was):
                yield f"sent {name} cut to {len(sent)} of {len(was)} characters"

    def _see_scope(self, seen: Observed) -> None:
        token = seen.entry.token
        if token is None or token.scope != "read" or seen.entry.method in SAFE or seen.entry.status != FORBIDDEN:
            return
        if (refused := self._read_only.get(seen.client)) is not None:
            self.accuse("wrote again with a token that can only read, after a 403", seen, refused)
        else:
            self._read_only[seen.client] = seen.entry

    def _remember(self, seen: Observed) -> None:
        """Remember what the client got."""
        client = seen.client
        for name, part in members(seen.answer):
            if isinstance(part, int) and part > mangling.LARGEST_SMALL and name.endswith("id"):
                self._remember_id(client, part)
            elif isinstance(part, str) and len(part) <= LONGEST:
                self._remember_text(client, part)
            elif isinstance(part, dict) and "id" in part and "model_type" in part:
                values = {key: value for key, value in part.items() if _is_kept(value)}
                self._rows[client, part["model_type"], str(part["id"])] = values

    def _remember_id(self, client: str, number: int) -> None:
        self._given[client] = None
        self._ids[client, str(number)] = None
        self._mangled_ids[client, "any"] = number
        for each in mangling.mangled_ids(number):
            self._mangled_ids[client, each] = number

    def _remember_text(self, client: str, text: str) -> None:
        if (client, text) not in self._texts:
            self._texts[client, text] = None
            for each in mangling.mangled_texts(text):
                self._mangled_texts[client, each] = ascii(text[:SHOWN])


def _noun(seen: Observed) -> str:
    """Return the kind of object that the path names, such as `playlist`."""
    segments = [part for part in (seen.entry.route or "").split("/") if not part.startswith("{")]
    return segments[-1].removesuffix("s")


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _is_kept(value: Any) -> bool:
    return value is None or (isinstance(value, str) and len(value) <= LONGEST)
