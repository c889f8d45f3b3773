"""Search for accounts by name: matching, ranking, and updates of the index."""

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from musicsvc.clock import Clock
from musicsvc.store.accounts import user_search, users
from musicsvc.store.engine.name_keys import folded_key
from musicsvc.store.engine.store import Store
from musicsvc.store.models import User
from musicsvc.store.schema import schema
from tests.support.examples import examples
from tests.support.rolled_back import rolled_back


def _people(*names: str) -> dict[int, str]:
    made: dict[int, str] = {}
    for name in names:
        number = len(made)
        values = {"email": f"{number}@x.test", "email_key": f"{number}@x.test", "display_name": name, "created_at": 0}
        made[User.insert(**values).execute()] = name
    user_search.add(made.items())
    return made


def _found(store: Store, names: list[str], query: str, limit: int = 10) -> list[str]:
    """Return the display names that the query finds among these, best first."""

    def unit() -> list[str]:
        _people(*names)
        return [person.display_name for person in user_search.find(query, limit)]

    return rolled_back(store, unit)


def _tier(name: str, query: str) -> int | None:
    """Return the rank of the match, computed without the index."""
    name, query = folded_key(name), folded_key(query)
    if not query:
        return None
    if name.startswith(query):
        return 0
    places = [at for at in range(1, len(name)) if name.startswith(query, at)]
    if any(_begins_word(name, at) for at in places):
        return 1
    return 2 if places and len(query) >= 3 else None


def _begins_word(name: str, at: int) -> bool:
    """Return whether a word begins here, after the first character."""
    before = name[at - 1]
    return name[at] in BLANKLESS or (name[at].isalnum() and (not before.isalnum() or before in BLANKLESS))


SIGNS = st.sampled_from(
    [*"aAbBnoß1 -'%_\"\\*ªº.", "é", "e\u0301", "Å", "ﬁ", "太", "郎", "한", "ภ", "า", "и", "й", "क्ष", "\u200d", "🎵"]
)
BLANKLESS = set("太郎한ภา")
TEXT = st.lists(SIGNS, min_size=1, max_size=9).map("".join)


@settings(max_examples=examples(150), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(names=st.lists(TEXT, min_size=1, max_size=8), query=TEXT, limit=st.integers(1, 5), part=st.data())
def test_a_search_finds_what_the_rule_says_and_in_its_order(
    store: Store, names: list[str], query: str, limit: int, part: st.DataObject
) -> None:
    name = part.draw(st.sampled_from(names))
    start = part.draw(st.integers(0, len(name) - 1))
    for text in (query, name[start : start + part.draw(st.integers(1, 4))]):

        def unit(text: str = text) -> None:
            tiers = [(_tier(name, text), len(folded_key(name)), key) for key, name in _people(*names).items()]
            expected = [key for tier, _, key in sorted(row for row in tiers if row[0] is not None)]
            assert [person.id for person in user_search.find(text, limit)] == expected[:limit]

        rolled_back(store, unit)


FOUND = (
    ("Zoë Müller", "zoe mull"),
    ("ZOE MULLER", "zoë"),
    ("Søren Łuk", "soren luk"),
    ("Straße", "STRASSE"),
    ("İpek Işık", "ipek isik"),
    ("Ελένη Γιώργος", "ελενη"),
    ("Ёлка Иванова", "елка"),
    ("مُحَمَّد", "محمد"),
    ("山田太郎", "田太郎"),
    ("김민준", "김민"),
    ("周杰伦", "杰伦"),
    ("周杰伦", "伦"),
    ("김민준", "준"),
    ("きゃりーぱみゅ", "みゅ"),
    ("ภาษาไทย", "ษา"),
    ("ພາສາລາວ", "ວ"),
    ("ភាសាខ្មែរ", "ខ្មែ"),
    ("မြန်မာ", "မာ"),
    ("The 周", "周"),
    ("DJ周", "周"),
    ("周DJ", "dj"),
    ("a\u2010ha", "a-ha"),
    ("a-ha", "A\u2013HA"),
    ("\u201cHeroes\u201d", '"heroes"'),
    ('"Heroes"', "\u201eheroes"),
    ("Don\u2019t", "don't"),
    ("Anna\u00a0 Maria", "anna maria"),
    ("An\u00adna", "anna"),
    ("❤️ beats", "❤ be"),
)


def test_neither_case_nor_accents_keep_a_name_from_being_found(store: Store) -> None:
    for name, query in FOUND:
        assert (query, _found(store, [name, "Somebody Else"], query)) == (query, [name])


def test_special_characters_of_searches_match_literally(store: Store) -> None:
    names = ["1000", "aXb", "annals", "NEAR", "a", "-- '' --", "anything"]
    for query in ("100%", "%_%", "a_b", "*", '"', "\\", "ann*", "NEAR(", "ªªa", "- ' -"):
        assert (query, _found(store, names, query)) == (query, [])
        if folded_key(query) == query.lower():
            assert _found(store, [*names, f"x {query} y"], f"x {query}") == [f"x {query} y"]


def test_unknown_or_invisible_text_finds_no_account(store: Store) -> None:
    for query in ("\u0301", "\u200d", "zzz"):
        assert (query, _found(store, ["Ann", "\u0301"], query)) == (query, [])


def test_an_account_is_found_once_created_and_not_while_suspended(store: Store, clock: Clock) -> None:
    def found() -> list[int]:
        return store.read(lambda: [person.id for person in user_search.find("ada", 10)]).result()

    made = store.write(lambda: users.create("ada.l@example.test", now=clock.now())).result()
    assert found() == [made.id]
    for _ in range(2):
        store.write(lambda: users.suspend(users.get(made.id), now=clock.now())).result()
        assert found() == []
        store.write(lambda: users.set_display_name(users.get(made.id), "Ada")).result()
        assert found() == []
    for _ in range(2):
        store.write(lambda: users.reinstate(users.get(made.id), now=clock.now())).result()
        assert found() == [made.id]
    assert store.read(schema.problems).result() == []


def test_a_rolled_back_account_is_not_found(store: Store, clock: Clock) -> None:
    rolled_back(store, lambda: users.create("ada@example.test", now=clock.now()))
    assert store.read(lambda: user_search.find("ada", 10)).result() == []
