"""Tests that the cost of looking at a text of a client does not grow with the square of its length."""

import ast
import re
from collections.abc import Callable, Iterator
from functools import partial
from typing import Annotated, Any

import pytest
from pydantic import StringConstraints

from musicsvc.server import peer
from musicsvc.server.schemas.fields import Body
from musicsvc.store.importing import headings
from tests.adverse import costs, repeats, schemas
from tests.adverse.places import PLACES, Place
from tests.adverse.sites import SEARCHING, Product, Reached, Site, scan, sites_of

pytestmark = [pytest.mark.slow, pytest.mark.only_on("sqlite")]

SCHEMAS = dict(schemas.all_places())
# Places that no text of a client reaches, with the reason. The beginning of a path stands for all in it.
NOT_REACHED = {
    "cli/": "what the operator types",
    "config.py:": "settings",
    "setting_types.py:": "settings",
    "server/logs/setup.py:": "names of loggers",
    "server/network/tls.py:": "certificates",
    "server/openapi/models.py:": "names of schemas",
    "server/pages/html.py:POSTED": "our templates",
    "server/schemas/answers.py:": "of responses",
    "server/schemas/exports.py:Verification.sha256": "of responses",
    "server/schemas/insights.py:RecentPlay.listener_hash": "of responses",
    "server/shapes/envelope.py:TEXT": "media types of responses",
    "server/shapes/insights.py:": "notes of figures",
    "server/demo/scoring/refusals.py:": "headers of responses",
    "reports/writing.py:_coverage()": "the characters of our fonts, read once",
    "store/backups/": "files of backups",
    "store/engine/postgres/connections.py:": "errors of PostgreSQL",
    "store/engine/tables.py:": "our SQL",
    "store/engine/url.py:": "settings",
    "store/importing/cells/times.py:PLAIN_HOUR": "the first 13 characters of a time",
    "store/importing/files/unpacking/parquet.py:": "the path at which the server keeps a file",
    "store/recounting/": "files of dumps",
    "store/schema/history.py:": "versions",
    "reports/parquet.py:": "errors of DuckDB",
}
# Patterns that are passed as functions, which leaves no trace, and where they are looked at.
PASSED = {"server/peer.py:PROXY_HEADER": "Forwarded"}
MANY = 25_000  # characters of a body whose values are counted


@pytest.fixture(scope="module")
def product() -> Product:
    return scan()


@pytest.fixture(scope="module")
def reached() -> Reached:
    """Return what the places of the table reach, with short texts."""
    found = Reached()
    for place in (*PLACES.values(), *SCHEMAS.values()):
        for _, make in place.texts():
            for size in (30, MANY) if place.most > MANY else (min(30, place.most),):
                found.run(partial(place.look, make(size)))
    return found


def is_reached(site: Site, reached: Reached) -> bool:
    if site.kind == "pattern=":
        return site.pattern in set(schema_patterns())
    return str(site) in PASSED or reached.has(site)


def schema_patterns() -> Iterator[str]:
    """Yield the patterns in the schemas of bodies and queries."""
    for place in SCHEMAS.values():
        schema = place.look.args[0]  # type: ignore[attr-defined]
        yield from schemas.patterns_of(schema.model_json_schema())


def reason(site: Site) -> str | None:
    return next((why for beginning, why in NOT_REACHED.items() if str(site).startswith(beginning)), None)


def test_each_place_that_looks_at_text_is_in_the_table_or_gets_no_text_of_clients(
    product: Product, reached: Reached
) -> None:
    missing = [str(site) for site in product.sites if reason(site) is None and not is_reached(site, reached)]
    assert not missing, "Add them to tests/adverse/places.py, or to NOT_REACHED with the reason."
    unused = [each for each in NOT_REACHED if not any(str(site).startswith(each) for site in product.sites)]
    assert not unused


def test_no_pattern_repeats_the_same_characters_twice(product: Product) -> None:
    found = [fault for pattern in set(schema_patterns()) for fault in repeats.faults(pattern)]
    for site in product.sites:
        if reason(site) is None:
            found += faults_of(site, product)
    assert not found


def faults_of(site: Site, product: Product) -> list[str]:
    if isinstance(site.value, re.Pattern):
        return repeats.compiled_faults(site.value, searched=site.name in product.searched)
    return [] if site.pattern is None else repeats.faults(site.pattern, searched=site.kind in SEARCHING)


@pytest.mark.parametrize("name", PLACES)
def test_looking_at_a_text_costs_no_more_than_its_length(name: str) -> None:
    assert not faults_in(PLACES[name])


@pytest.mark.parametrize("part", range(4))
def test_validating_a_body_or_a_query_costs_no_more_than_its_length(part: int) -> None:
    found = {name: faults_in(SCHEMAS[name]) for name in [*SCHEMAS][part::4]}
    assert not {name: faults for name, faults in found.items() if faults}


def faults_in(place: Place) -> list[str]:
    made = ((text, costs.fault(place.look, make, place.most)) for text, make in place.texts())
    return [f"{text}: {fault}" for text, fault in made if fault is not None]


PLANTED = re.compile("(a+)+b")


class PlantedBody(Body):
    name: Annotated[str, StringConstraints(pattern="(a+)+b")]


def test_a_pattern_with_a_repeat_in_a_repeat_is_found_in_a_schema() -> None:
    assert [*schemas.patterns_of(PlantedBody.model_json_schema())] == [PLANTED.pattern]
    assert repeats.faults(PLANTED.pattern, searched=False)


@pytest.mark.parametrize(
    ("module", "name", "place"),
    [(peer, "PROTO", "Forwarded"), (headings, "WORD", "a heading")],
    ids=["header", "heading"],
)
def test_a_pattern_with_a_repeat_in_a_repeat_is_found_in_a_header_and_a_heading(
    monkeypatch: pytest.MonkeyPatch, module: Any, name: str, place: str
) -> None:
    monkeypatch.setattr(module, name, PLANTED)
    monkeypatch.setattr(costs, "GIVEN_UP", 4 * costs.ONE_GO)  # as soon as it is plain
    file = module.__name__.removeprefix("musicsvc.").replace(".", "/") + ".py"
    (site,) = sites_of(file, ast.parse(f"{name} = re.compile('{PLANTED.pattern}')"))
    assert faults_of(site, Product([], set()))
    assert faults_in(PLACES[place]._replace(frames=["…"], pieces=["a"]))


def test_a_place_that_is_new_is_missing_in_the_table(reached: Reached) -> None:
    source = "def new(text):\n    return re.sub('a', 'b', unicodedata.normalize('NFC', text))"
    for site in sites_of("server/peer.py", ast.parse(source)):
        assert reason(site) is None
        assert not is_reached(site, reached)


@pytest.mark.parametrize(
    ("pattern", "searched"),
    [
        (r"(a+)+b", False),
        (r"(?:a|a)*b", False),
        (r"[^\"]+\s*x", False),
        (r".*\[object.*", False),
        (r"(\w+\s?)*$", False),
        (r'"(?:[^"\\]|\\.)*+"', True),
        (r"[(\[].*?[)\]]", True),
        (r";?[ \t]*name", True),
    ],
)
def test_patterns_that_cost_too_much_are_told(pattern: str, *, searched: bool) -> None:
    assert repeats.faults(pattern, searched=searched)


@pytest.mark.parametrize("pattern", ["[a-z]+=[a-z]*", "(?:[a-z]+,)*x", r"\s*+\w*", "(?:/[a-z]+)*", "[0-9]{1,9}[0-9]*"])
def test_patterns_that_cost_what_their_text_does_are_told_from_them(pattern: str) -> None:
    assert not repeats.faults(pattern, searched=False)


def quadratic(text: str) -> int:
    return sum(text.count("a", at) for at in range(0, len(text), 16))


def in_steps(text: str) -> list[str]:
    return sorted(text[: 2**17]) if len(text) >= 2**14 else []


@pytest.mark.parametrize(("look", "passes"), [(quadratic, False), (in_steps, True), (list, True)])
def test_growth_is_told_from_a_step(look: Callable[[str], object], *, passes: bool) -> None:
    assert (costs.fault(look, "a".__mul__, 2**17) is None) == passes
