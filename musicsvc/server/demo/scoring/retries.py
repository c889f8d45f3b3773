"""The point of clients that send a POST again only if that is harmless."""

import json
from collections.abc import Hashable, Mapping
from typing import Any

from cachetools import LRUCache

from musicsvc.server.demo.journal import Entry
from musicsvc.server.demo.scoring.observed import FAILED, Observed
from musicsvc.server.demo.scoring.plays import plays_of
from musicsvc.server.demo.scoring.point import Point

MOST_LOST = 1000
HARMLESS = {  # the last segments of paths: the same request again changes nothing, or is refused
    "accept-invite", "decline-invite", "fcm-tokens", "follow", "invite", "like", "login", "preview", "register",
    "remove", "repost", "unfollow", "unlike", "unrepost", "csv", "json", "xlsx", "report", "pdf",
}  # fmt: skip
ACTIONS = {"add", "move"}
KEY = "Idempotency-Key"


class RetriesSafely(Point):
    """A client sends a POST again whose outcome it does not know only if that creates nothing twice.

    The outcome is unknown after a lost response and after a 500. A request may be sent again with the same
    `Idempotency-Key`, if its endpoint takes one, and a report of plays if each play has a `client_id`. Otherwise a
    client first looks if what it would create exists: it reads a list of such objects or the object that has them, or
    searches.
    """

    name = "retries"
    title = "Retries without duplicates"
    remedy = (
        "Send an Idempotency-Key with each POST that takes one, and the same one again, or give each play a client_id."
        " Before you repeat another POST, look whether the first one has created it."
    )
    occasion = "Let the client create a playlist or report a play; the first of each gets no response."

    def __init__(self, document: Mapping[str, Any]) -> None:
        super().__init__()
        posts = ((path, operations.get("post", {})) for path, operations in document["paths"].items())
        self._keyed = {path for path, post in posts if any(each["name"] == KEY for each in post.get("parameters", ()))}
        self._unknown: LRUCache[tuple[str, Hashable], Entry] = self.cache(MOST_LOST)

    def see(self, seen: Observed) -> None:
        if seen.entry.method == "GET":
            self._look(seen)
        elif seen.entry.method == "POST":
            plays = {(seen.client, play.key): play.client_id is not None for play in plays_of(seen)}
            self._see_post(seen, plays or {(seen.client, key): False for key in _keys_of(seen)})

    def _see_post(self, seen: Observed, keys: Mapping[tuple[str, Hashable], bool]) -> None:
        """Evaluate a POST. `keys`: what it creates, and if each of that may be sent twice."""
        began = seen.entry.began  # a request that was on its way repeats nothing
        known = [key for key in keys if key in self._unknown and began > self._unknown[key].ended]
        repeated = [(keys[key], self._unknown.pop(key)) for key in known]
        key = seen.entry.headers.get(KEY) if seen.entry.route in self._keyed else None
        once = [key is not None and first.headers.get(KEY) == key for _, first in repeated]
        harmful = [first for (harmless, first), kept in zip(repeated, once, strict=True) if not (harmless or kept)]
        if harmful:
            self.accuse("sent a POST again that may have been executed, and that nothing identifies", seen, harmful[0])
        self.passed |= bool(repeated)
        if seen.lost or seen.entry.status == FAILED:
            self._unknown.update(dict.fromkeys(keys, seen.entry))

    def _look(self, seen: Observed) -> None:
        """Note that the client has looked if what it may have created exists."""
        if not seen.arrived or (seen.entry.status or FAILED) >= 400:  # noqa: PLR2004 - the first status of errors
            return
        for key, entry in [*self._unknown.items()]:
            shows = f"/{_created(entry)}" in seen.path or entry.target.startswith(f"{seen.path}/")
            ours = key[0] == seen.client and seen.entry.began > entry.ended
            if ours and (shows or seen.path.endswith("/search")):
                del self._unknown[key]
                self.passed = True


def _last(entry: Entry) -> str:
    return entry.target.partition("?")[0].rpartition("/")[2]


def _created(entry: Entry) -> str:
    """Return the name of the list that the request changes, such as `playlists`."""
    segments = entry.target.partition("?")[0].split("/")
    return next(segment for segment in reversed(segments) if segment not in ACTIONS)


def _keys_of(seen: Observed) -> list[Hashable]:
    """Return the identity of a request that creates something."""
    if seen.entry.route is None or _last(seen.entry) in HARMLESS:
        return []
    return [(seen.path, json.dumps(seen.body, sort_keys=True))]
