"""Answers to requests with a key, kept for a day in the transaction of the request: a repeat gets the same answer."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from typing import Any, NamedTuple

from musicsvc.clock import DAY
from musicsvc.errors import InProgress, Invalid
from musicsvc.store.engine.sql import T, compiled, is_sqlite, try_lock
from musicsvc.store.models import KeptAnswer, Participant, User

FIELD = "Idempotency-Key"  # in errors
KEPT = DAY
MOST_KEYS = 1000  # of an account
MOST_BYTES = 64 * 1024  # of an answer; larger ones are not kept
CLEANED = 5000  # at once
RUNNING = "A request with this Idempotency-Key is still running. Send it again in a second."
OTHER = "This key was sent with another request to {}. Use a new key for each request, and the same one to repeat it."


class Keyed(NamedTuple):
    """A request with a key: its account, its path, and the SHA-256 of its body."""

    account: int
    key: str
    path: str
    body_hash: bytes

    @property
    def lock(self) -> int:
        """The number of the lock of the key, which differs from those of other keys as far as a hash does."""
        return int.from_bytes(hashlib.sha256(f"{self.account} {self.key}".encode()).digest()[:8], signed=True)


def once(asked: Keyed, unit: Callable[[], T], encode: Callable[[T], bytes | None], *, now: int) -> T | bytes:
    """Return the result of `unit` and keep its answer, or return the answer that is kept of the same request.

    Raises Invalid if the key was sent with another request, InProgress while another transaction has the key.
    """
    if not try_lock(asked.lock):
        raise InProgress(RUNNING)
    for number, path, body_hash, answer, kept_at in _find(asked.account, asked.key):
        if kept_at > now - KEPT:
            if (path, bytes(body_hash)) != (asked.path, asked.body_hash):
                raise Invalid({FIELD: OTHER.format(path)})
            return bytes(answer)
        KeptAnswer.delete().where(KeptAnswer.id == number).execute()
    result = unit()
    if (answer := encode(result)) is not None and len(answer) <= MOST_BYTES:
        _keep(*asked, answer, now)
        _remove_surplus(asked.account)
    return result


@compiled
def _find(account: int, key: str) -> Any:
    kept = KeptAnswer
    columns = kept.id, kept.path, kept.body_hash, kept.answer, kept.kept_at
    return kept.select(*columns).where(kept.user == account, kept.key == key)


@compiled
def _keep(account: int, key: str, path: str, body_hash: bytes, answer: bytes, now: int) -> Any:
    """Keep the answer, unless the account was deleted after its request was admitted."""
    kept = KeptAnswer
    row: Any = User.select(User.id, key, path, body_hash, answer, now).where(User.id == account)
    row = row if is_sqlite() else row.for_update("FOR KEY SHARE")  # as a reference would lock it
    return kept.insert_from(row, [kept.user, kept.key, kept.path, kept.body_hash, kept.answer, kept.kept_at])


@compiled
def _remove_surplus(account: int) -> Any:
    newest = KeptAnswer.alias()
    ids = newest.select(newest.id).where(newest.user == account).order_by(newest.id.desc())
    return KeptAnswer.delete().where(KeptAnswer.user == account, KeptAnswer.id <= ids.limit(1).offset(MOST_KEYS))


def clean(now: int) -> None:
    """Delete answers that were kept for a day."""
    old = KeptAnswer.select(KeptAnswer.id).where(KeptAnswer.kept_at <= now - KEPT)
    KeptAnswer.delete().where(KeptAnswer.id.in_(old.order_by(KeptAnswer.kept_at).limit(CLEANED))).execute()


def forget(account: int) -> None:
    """Delete the answers to others in the conversations of an account that have its name."""
    mine = Participant.select(Participant.conversation).where(Participant.user == account)
    others = Participant.select(Participant.user).where(Participant.conversation.in_(mine))
    rows = KeptAnswer.select(KeptAnswer.id, KeptAnswer.answer).where(KeptAnswer.user.in_(others)).tuples()
    named = f'"id":{account},"display_name":'.encode()
    ids = [number for number, answer in rows.iterator() if named in bytes(answer)]
    KeptAnswer.delete().where(KeptAnswer.id.in_(ids)).execute()
