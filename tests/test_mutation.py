"""The mutation run, on a project with one module."""

import json
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from mutation import breaks, listed
from mutation.__main__ import main
from mutation.choosing import Chooser
from mutation.project import Project
from mutation.recording import TABLES, Recording, Traced
from mutation.source import Source

SHOP = '''
"""A shop."""

from __future__ import annotations

FREE_FROM = 50


def total(prices: list[int], *, member: bool) -> int:
    """The sum, with the fee for sending it."""
    if not prices:
        return 0
    summed = sum(prices)
    if member and summed > 10:
        summed -= 1
    return summed + fee(summed)


def fee(summed: int) -> int:
    return 0 if summed >= FREE_FROM else 5


def wait(turns: int) -> int:
    done = 0
    while done < turns:
        done += 1
    return done
'''
TESTS = """
import subprocess
import sys

from shop import prices


def test_an_empty_cart_costs_nothing() -> None:
    assert prices.total([], member=True) == 0


def test_a_large_cart_is_sent_free() -> None:
    assert prices.total([20, 30], member=False) == 50


def test_members_pay_less() -> None:
    assert prices.total([20], member=True) == 24


def test_a_small_cart_costs_a_fee_in_another_process() -> None:
    code = "from shop import prices; raise SystemExit(prices.total([4], member=False))"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 9


def test_turns_are_counted() -> None:
    assert prices.wait(3) == 3
"""
MODULE = "shop/prices.py"
UNNOTICED = (MODULE, "total", "if member and summed > 10:", "if member and summed >= 10:")  # no sum is 10
NOTICED = [
    (MODULE, "", "FREE_FROM = 50", "FREE_FROM = 51"),
    (MODULE, "fee", "return 0 if summed >= FREE_FROM else 5", "return 0 if summed >= FREE_FROM else 6"),
]
ENDLESS = (MODULE, "wait", "done += 1", "pass")


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Create the project, with a recording."""
    root = tmp_path_factory.mktemp("project")
    (root / "shop").mkdir()
    (root / "shop" / "__init__.py").touch()
    (root / MODULE).write_text(SHOP, "utf-8")
    (root / "tests").mkdir()
    (root / "tests" / "test_prices.py").write_text(TESTS, "utf-8")
    (root / "pyproject.toml").write_text('[tool.pytest.ini_options]\naddopts = "--import-mode=importlib"\n', "utf-8")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")  # pytest starts four times as fast
        assert _mutation(root, "record") == 0
        yield root


def _mutation(root: Path, *arguments: str) -> int:
    return main(["--root", str(root), "--package", "shop", *arguments])


def _breaks(text: str = SHOP) -> list[breaks.Break]:
    return list(breaks.of_module(Source(MODULE, text.encode())))


def test_what_survives_is_printed_and_what_is_caught_is_not(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    tried = [UNNOTICED, *NOTICED, ENDLESS]
    (project / ".mutation" / "survivors.json").write_text(json.dumps(tried), "utf-8")

    assert _mutation(project, "run", "--again", "--patience", "0.2", "--at-least", "76") == 1

    out = capsys.readouterr().out
    assert "4 breaks: 3 caught (1 of them by their time), 1 survived: 75.0 % caught" in out
    assert [line for line in out.splitlines() if line.startswith("+ ")] == ["+    if member and summed >= 10:"]
    assert (project / MODULE).read_text("utf-8") == SHOP


def test_an_empty_list_that_is_returned_has_no_other_value() -> None:
    for empty, expected in (("[]", []), ("()", []), ("[1]", ["return ([1])[1:]"])):
        module = f"def items() -> list[int]:\n    return {empty}\n"
        assert [each.key[3] for each in _breaks(module) if each.kind == "return value"] == expected


def test_a_recording_knows_the_tests_of_a_branch_in_other_processes_too(project: Path) -> None:
    recorded = Recording.load(project / ".mutation" / "recording.json")

    def names(function: str, suite: int) -> set[str]:
        return {test.rpartition("::")[2] for test in recorded.tests(MODULE, function, suite)}

    assert names("total", 1) == {"test_an_empty_cart_costs_nothing"}
    assert names("total", 2) == {"test_members_pay_less"}
    assert names("fee", 0) == {
        "test_a_large_cart_is_sent_free",
        "test_members_pay_less",
        "test_a_small_cart_costs_a_fee_in_another_process",
    }


def test_a_changed_function_keeps_its_tests_and_a_new_one_has_none(project: Path, tmp_path: Path) -> None:
    recorded = Recording.load(project / ".mutation" / "recording.json")
    shutil.copytree(project, tmp_path, dirs_exist_ok=True)
    changed = SHOP.replace("return done", "return done + 0").replace("def fee", "def charge")
    (tmp_path / MODULE).write_text(changed, "utf-8")

    adapted = recorded.adapted(Project(tmp_path, "shop"))

    assert adapted.tests(MODULE, "wait", 1) == {"tests/test_prices.py::test_turns_are_counted"}
    assert adapted.tests(MODULE, "total", 1) == recorded.tests(MODULE, "total", 1)
    assert adapted.tests(MODULE, "charge", 0) == adapted.tests(MODULE, "fee", 0) == set()


def test_a_break_outside_of_functions_starts_with_the_tests_that_compare_tables() -> None:
    root = Path(__file__).resolve().parents[1]
    whole, other = f"{TABLES}::test_a_table", "tests/test_mutation.py::test_a_fee"
    assert (root / TABLES).exists()
    recorded = Recording({other: 0.1, whole: 3.0}, {MODULE: {"fee": Traced("", [{other}])}})
    choose = Chooser(recorded.thinned(), root, [Source(MODULE, SHOP.encode())], budget=1)

    first = {each.function: choose(each).first for each in _breaks() if each.function in {"", "fee"}}

    assert first == {"": [whole, other], "fee": [other]}


def test_a_break_outside_of_functions_meets_the_tests_that_import_the_module_and_execute_nothing() -> None:
    root, module = Path(__file__).resolve().parents[1], "mutation/choosing.py"  # which this file imports
    values, others = "tests/test_mutation.py::test_a_value", "tests/test_house.py::test_a_value"
    recorded = Recording(dict.fromkeys((others, values), 0.1), {module: {"fee": Traced("", [set()])}})
    source = Source(module, SHOP.encode())
    choose = Chooser(recorded, root, [source], budget=1)

    first = {each.function: choose(each).first for each in breaks.of_module(source) if each.function in {"", "fee"}}

    assert first == {"": [values], "fee": []}


def test_a_break_outside_of_functions_has_room_for_a_test_of_much_code() -> None:
    root = Path(__file__).resolve().parents[1]
    narrow = [f"tests/test_mutation.py::test_{number:02}" for number in range(40)]
    wide, slow = "tests/test_house.py::test_everything", "tests/test_house.py::test_slowly"
    suites = [{*narrow, wide, slow}, *[{wide, slow}] * 9]
    recorded = Recording(dict.fromkeys(narrow, 1.0) | {wide: 3.9, slow: 4.1}, {MODULE: {"fee": Traced("", suites)}})
    choose = Chooser(recorded, root, [Source(MODULE, SHOP.encode())], budget=13)

    chosen = {each.function: choose(each) for each in _breaks() if each.function in {"", "fee"}}

    assert {name: choice.rest for name, choice in chosen.items()} == {"": [*narrow[4:12], wide], "fee": narrow[4:16]}
    assert chosen[""].left_out == pytest.approx(28 + 4.1)


def test_a_sample_comes_from_its_seed_and_survives_other_changes() -> None:
    drawn = [each.key for each in breaks.sample(_breaks(), 6, seed=3)]
    moved = f"import os\n{SHOP}".replace("while done < turns:", "while turns > done:")
    after = [each.key for each in breaks.sample(_breaks(moved), 6, seed=3)]

    assert drawn == [each.key for each in breaks.sample(_breaks(), 6, seed=3)]
    assert drawn != [each.key for each in breaks.sample(_breaks(), 6, seed=4)]
    assert len(set(drawn) & set(after)) >= 5  # one line has changed
    assert len({key[2] for key in drawn}) == 6
    assert drawn[0] not in [each.key for each in breaks.sample(_breaks(), 6, seed=3, left_out={drawn[0]})]


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("a < b", {"a <= b"}),
        ("a is not b", {"a is b"}),
        ("(a or b) and c", {"(a and b) and c", "(b) and c", "(a) and c", "(a or b) or c", "c", "(a or b)"}),
        ("not (a and b)", {"(a and b)", "not (a or b)", "not (b)", "not (a)"}),
        ("[x for x in a if b]", {"[x for x in a if True]"}),
        ("f(a, (b), key=1)", {"f(b, (a), key=1)", "f(a, (b), )", "f(a, (b), key=2)", "f(a, (b), key=0)"}),
        ("q.where(a, b).order_by(c)", {"q.where(a, b)", "q.order_by(c)", "q.where(b).order_by(c)",
                                       "q.where(b, a).order_by(c)"}),
        ('"SELECT a FROM b WHERE c = 1 AND d"', {'"SELECT a FROM b WHERE c <> 1 AND d"',
                                                 '"SELECT a FROM b WHERE c = 1 OR d"'}),
        ('f"{a} SET b = 1 WHERE {c=}"', set()),
        ('"to be read"', set()),
        ("sorted(a)", {"list(a)"}),
        ("min(a)", {"max(a)"}),
        ("min(a, b)", {"max(a, b)"}),
    ],
)  # fmt: skip
def test_an_expression_is_broken(before: str, after: set[str]) -> None:
    made = breaks.of_module(Source(MODULE, f"x = {before}\n".encode()))

    assert {each.content.decode() for each in made if each.is_meant()} == {f"x = {text}\n" for text in after}


def test_texts_types_and_what_never_runs_stay_whole() -> None:
    text = '''"""Doc."""
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    a = 1
T = TypeVar("T", bound="X")
Kind = int | None
log.info("started", 1)


def f(x: "int" = None) -> None:
    """Doc 1."""
    log.debug("x" + "y")
'''

    assert _breaks(text) == []


def test_code_of_postgres_is_broken_in_runs_on_postgres_alone() -> None:
    root = Path(__file__).resolve().parents[1]
    sqlite, postgres = Project(root), Project(root, store="postgres")
    assert "musicsvc/store/engine/postgres/store.py" in postgres.modules()
    assert all("/postgres" in module for module in postgres.modules())
    assert not set(sqlite.modules()) & set(postgres.modules())
    assert [sqlite.runs(name) for name in ("check_database", "_check_postgres")] == [True, False]
    assert postgres.runs("_check_postgres")


def test_the_breaks_by_hand_fit_the_code() -> None:
    house = Project(Path(__file__).resolve().parents[1])

    found, unfit = listed.semantic([Source(module, house.source(module)) for module in house.modules()])

    assert len(unfit) < len(found) / 4, unfit


def test_the_equivalent_breaks_fit_the_code() -> None:
    house = Project(Path(__file__).resolve().parents[1])
    named = listed.equivalent()
    sources = [
        Source(module, house.source(module)) for module in house.modules() if module in {key[0] for key in named}
    ]

    unfit = named - {each.key for source in sources for each in breaks.of_module(source)}

    assert len(unfit) < len(named) / 4, unfit
