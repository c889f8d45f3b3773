"""The plays in the requests of clients, and the point of clients that lose none and report none twice."""

import json
from collections.abc import Hashable, Iterator
from typing import Any, NamedTuple

from cachetools import LRUCache

from musicsvc.server.demo.journal import Entry
from musicsvc.server.demo.scoring.observed import FAILED, Observed
from musicsvc.server.demo.scoring.point import Point, Violation

PLAYS = "/api/v1/plays"
MOST_PLAYS = 10_000
MOST_CLIENTS = 10_000
ENOUGH = 3  # requests after which a client has gone on
AGAIN = {401, 408, 429}  # refusals after which a client sends the same again


class Play(NamedTuple):
    """A play as it was sent. `account`: that of the token; `content`: its track, time and listener."""

    account: int | None
    client_id: str | None
    content: Hashable

    @property
    def key(self) -> Hashable:
        """The identity of the play for the service: its account and client id, or without that its content."""
        return self.account, self.content if self.client_id is None else ("client_id", self.client_id)


def plays_of(seen: Observed) -> Iterator[Play]:
    """Yield the plays in the body of a report of plays."""
    if seen.entry.method != "POST" or seen.entry.route != PLAYS or not isinstance(seen.body, dict):
        return
    rows, token = seen.body.get("plays"), seen.entry.token
    for row in rows if isinstance(rows, list) else ():
        if isinstance(row, dict):
            given = row.get("client_id")
            yield Play(token and token.account_id, given if isinstance(given, str) else None, _content(row))


def _content(row: dict[str, Any]) -> Hashable:
    return json.dumps([row.get("track_id"), row.get("played_at"), row.get("listener")])


def _is_final(seen: Observed) -> bool:
    """Return whether the client got the result of its report, if only that the plays are refused."""
    status = seen.entry.status or FAILED
    return seen.arrived and status < FAILED and status not in AGAIN


class Loss(NamedTuple):
    """A play whose report got no response. `seen_before`: the requests of its client until then."""

    play: Play
    entry: Entry
    client: str
    seen_before: int


class LosesNoPlay(Point):
    """If a report of plays gets no response, a client sends the same plays again until it gets one.

    The same play has the same `client_id`, or without one the same track, time and listener. A play with another
    `client_id` is another play, so it would be counted twice. A play is lost if its client has sent three other
    requests since.
    """

    name = "plays"
    title = "Loses no play"
    remedy = "Keep each play with its client_id until a response to POST /plays arrives, and send it again until then."
    occasion = "Let the client report a play; the first one gets no response."

    def __init__(self) -> None:
        super().__init__()
        self._lost: LRUCache[Hashable, Loss] = self.cache(MOST_PLAYS)
        self._by_content: LRUCache[Hashable, Loss] = self.cache(MOST_PLAYS)
        self._requests: LRUCache[str, int] = LRUCache(MOST_CLIENTS)

    def see(self, seen: Observed) -> None:
        before = self._requests.get(seen.client, 0)
        self._requests[seen.client] = before + 1
        for play in plays_of(seen):
            if seen.lost and play.key not in self._lost:
                self._find_twin(play, seen)
                loss = Loss(play, seen.entry, seen.client, before + 1)
                self._lost[play.key] = self._by_content[seen.client, play.content] = loss
            elif play.key in self._lost:
                if _is_final(seen):
                    self._settle(self._lost[play.key])
                    self.passed = True
            else:
                self._find_twin(play, seen)

    def _find_twin(self, play: Play, seen: Observed) -> None:
        """Find a lost play of an earlier request of the client that is the same as this one but for the client id."""
        loss = self._by_content.get((seen.client, play.content))
        if loss is not None and seen.entry.began > loss.entry.ended:
            self._settle(loss)
            self.accuse("sent a play again with another client_id, so it is counted twice", seen, loss.entry)

    def _settle(self, loss: Loss) -> None:
        self._lost.pop(loss.play.key, None)
        self._by_content.pop((loss.client, loss.play.content), None)

    def unsettled(self) -> Iterator[Violation]:
        for loss in self._lost.values():
            if self._requests.get(loss.client, 0) >= loss.seen_before + ENOUGH:
                text = "did not send a play again whose report got no response"
                yield Violation(text, loss.client, [loss.entry])
