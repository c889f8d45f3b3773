"""Genres are identified by their slug, tags by their spelling."""

import pytest
from hypothesis import given
from hypothesis import strategies as some

from musicsvc.errors import Invalid
from musicsvc.store.catalog import genres
from musicsvc.store.engine.store import Store
from musicsvc.store.models import Genre, Tag


@pytest.mark.parametrize(
    ("typed", "slug"),
    [
        ("Hip-Hop", "hip-hop"),
        ("  hip  HOP ", "hip-hop"),
        ("R&B", "r-b"),
        ("Ｐｏｐ", "pop"),
        ("ﬁeld", "field"),
        ("Straße", "strasse"),
        ("_under_score_", "under-score"),
        ("80's", "80-s"),
        ("भजन", "भजन"),
        ("เพลงไทยเดิม", "เพลงไทยเดิม"),
        ("唱歌", "唱歌"),
        ("***", ""),
        ("", ""),
    ],
)
def test_a_slug_is_letters_and_digits_with_hyphens_between(typed: str, slug: str) -> None:
    assert genres.slug(typed) == slug


@given(some.text())
def test_a_slug_is_its_own_slug_whatever_was_typed(typed: str) -> None:
    slug = genres.slug(typed)
    assert genres.slug(slug) == slug
    assert not slug.startswith("-")
    assert not slug.endswith("-")
    assert "--" not in slug


@given(some.text())
def test_case_makes_no_other_genre(typed: str) -> None:
    assert genres.slug(typed.casefold()) == genres.slug(typed)


def test_the_first_spelling_is_shown(store: Store) -> None:
    first = store.write(lambda: genres.ensure(["Hip-Hop", "Pop", "hip hop"])).result()
    second = store.write(lambda: genres.ensure(["HIP HOP", "Rock"])).result()
    assert second["hip-hop"] == first["hip-hop"]
    shown = store.read(lambda: sorted(Genre.select(Genre.display_name).tuples().iterator())).result()
    assert shown == [("Hip-Hop",), ("Pop",), ("Rock",)]


def test_a_genre_without_letter_or_digit_is_refused(store: Store) -> None:
    with pytest.raises(Invalid) as refused:
        store.write(lambda: genres.ensure(["Pop", "—"])).result()
    assert list(refused.value.errors) == ["genre"]
    assert store.read(Genre.select().count).result() == 0


def test_thousands_of_genres_and_tags_are_made_at_once(store: Store) -> None:
    names = [f"number {number}" for number in range(1500)]
    assert len(store.write(lambda: genres.ensure(names)).result()) == 1500
    assert len(store.write(lambda: genres.ensure_tags(names)).result()) == 1500
    again = store.write(lambda: genres.ensure_tags(names[::-1])).result()
    assert again == store.read(lambda: genres.find(names, Tag)).result()


def test_tags_are_trimmed_and_keep_their_case(store: Store) -> None:
    made = store.write(lambda: genres.ensure_tags([" Live ", "live", "Live"])).result()
    assert sorted(made) == ["Live", "live"]
