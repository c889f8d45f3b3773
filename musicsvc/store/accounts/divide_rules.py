"""The rules by which imports of an account divide cells with several names (`store/importing/dividing.py`)."""

from collections.abc import Mapping

from musicsvc.store.engine import bulk
from musicsvc.store.models import DivideRule

MOST_KEPT = 1_000  # rules of an account


def of_account(user: int) -> dict[str, tuple[str, ...]]:
    """Return the rules that are kept for an account, or for none (0), by `headings.key`."""
    found = DivideRule.select(DivideRule.heading, DivideRule.signs).where(DivideRule.user == user)
    return {heading: tuple(signs.split()) for heading, signs in found.tuples().iterator()}


def keep(user: int, rules: Mapping[str, tuple[str, ...]], now: int) -> None:
    """Keep rules for an account. Beyond MOST_KEPT the oldest go."""
    own = DivideRule.user == user
    DivideRule.delete().where(own, DivideRule.heading.in_(list(rules))).execute()
    newest = DivideRule.select(DivideRule.heading).where(own).order_by(DivideRule.set_at.desc(), DivideRule.heading)
    others = [heading for (heading,) in newest.limit(MOST_KEPT - len(rules)).tuples().iterator()]
    DivideRule.delete().where(own, DivideRule.heading.not_in(others)).execute()
    rows = [(user, heading, " ".join(signs), now) for heading, signs in rules.items()]
    bulk.insert(DivideRule, ("user", "heading", "signs", "set_at"), rows)
