"""The rules by which imports of an account divide cells with several names (`store/importing/dividing.py`)."""

from collections.abc import Mapping

from musicsvc.store.engine import bulk
from musicsvc.store.models import DivideRule

MOST_KEPT = 1_000  # rules of an account
REPLACE = "ON CONFLICT (user_id, heading) DO UPDATE SET signs = excluded.signs, set_at = excluded.set_at"


def of_account(user: int) -> dict[str, tuple[str, ...]]:
    """Return the rules that are kept for an account, or for none (0), by `headings.key`."""
    found = DivideRule.select(DivideRule.heading, DivideRule.signs).where(DivideRule.user == user)
    return {heading: tuple(signs.split()) for heading, signs in found.tuples().iterator()}


def keep(user: int, rules: Mapping[str, tuple[str, ...]], now: int) -> None:
    """Keep rules for an account. Beyond MOST_KEPT the oldest go."""
    rows = [(user, heading, " ".join(signs), now) for heading, signs in rules.items()]
    bulk.insert(DivideRule, ("user", "heading", "signs", "set_at"), rows, REPLACE)
    own = DivideRule.user == user
    newest = DivideRule.select(DivideRule.heading).where(own).order_by(DivideRule.set_at.desc(), DivideRule.heading)
    DivideRule.delete().where(own, DivideRule.heading.not_in(newest.limit(MOST_KEPT))).execute()
