"""Fixtures and options of all tests: a store of the chosen kind, a clock, the shared data."""

import atexit
import copy
import gc
import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import Any

import hypothesis
import pytest
from aiohttp.test_utils import TestClient
from aiohttp.web import BaseRequest
from pytest_aiohttp import AiohttpClient

from musicsvc.clock import Clock, MovableClock, parse
from musicsvc.config import Settings
from musicsvc.server.request import executors
from musicsvc.store import opening
from musicsvc.store.engine.sqlite import files
from musicsvc.store.engine.store import Store
from musicsvc.store.seeding import fixtures
from musicsvc.store.seeding.world import FixtureSummary
from tests.support import databases, postgres, preloaded
from tests.support.bounds import Bounds
from tests.support.serving import Client, ServiceServer, StartServer, connector, person

NOW = parse("2026-03-01T12:00:00Z")
SERVER = pytest.StashKey[postgres.Server]()
ADDRESS = pytest.StashKey[str]()
TESTS = Path(__file__).parent
OF_SERVER = TESTS / "server"
ONLY_ON_SQLITE = re.compile(r'^pytestmark = (\[[^]]*)?pytest\.mark\.only_on\("sqlite"\)', re.MULTILINE)
# The same examples in every run. Shrinking a failing example can take minutes, so only `--long` does it.
QUICK = [phase for phase in hypothesis.Phase if phase is not hypothesis.Phase.shrink]
hypothesis.settings.register_profile(
    "quick", database=None, deadline=None, derandomize=True, phases=QUICK, max_examples=40
)
# What draws examples finds faults of logic on SQLite; half as many run each statement on PostgreSQL, too.
hypothesis.settings.register_profile("postgres", hypothesis.settings.get_profile("quick"), max_examples=20)
hypothesis.settings.register_profile("long", database=None, deadline=None)
hypothesis.settings.load_profile("quick")


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("musicsvc")
    group.addoption("--store", choices=["sqlite", "postgres"], default="sqlite", help="database of the tests")
    group.addoption("--seed", type=int, default=1, help="seed of random tests of faults")
    group.addoption("--slow", action="store_true", help="also run tests that take more than a few seconds")
    group.addoption("--long", action="store_true", help="also run tests that take minutes; repeat crash tests 50 times")
    group.addoption("--rewrite", action="store_true", help="write the output of commands into their transcripts")


def pytest_configure(config: pytest.Config) -> None:
    """Start PostgreSQL once per run: in this process, or in the controller of xdist."""
    if config.getoption("--long"):
        hypothesis.settings.load_profile("long")
    elif config.getoption("--store") == "postgres":
        hypothesis.settings.load_profile("postgres")
    # Each worker, and each program that a test starts, would compile every module again.
    sys.dont_write_bytecode = False
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    # A command that lowers its own priority would lower that of all tests after it in this process.
    executors.NICENESS = 0
    # aiohttp reads the certificates of the system when it is imported, a fifth of the time; no test connects to others.
    os.environ.setdefault("SSL_CERT_FILE", os.devnull)
    room = postgres.room()
    if room is not None and not os.statvfs(room).f_flag & os.ST_NOEXEC:
        os.environ.setdefault("PYTEST_DEBUG_TEMPROOT", room)  # a third of the time is waiting for disks otherwise
    preloaded.note_variables()
    vars(subprocess)["Popen"] = preloaded.Popen
    gc.set_threshold(200_000)  # until the tests are collected, which creates many objects that stay
    given = getattr(config, "workerinput", None)
    if given is not None:
        config.stash[ADDRESS] = given["postgres"]
        return
    config.stash[ADDRESS] = ""
    if config.getoption("--store") != "postgres" or config.option.collectonly:
        return
    try:
        # Tests kill only servers of their own; to write the log at each commit takes a twentieth of the time.
        config.stash[SERVER] = postgres.Server(synchronous_commit="off")
    except postgres.MissingError as error:
        if os.environ.get("CI"):
            raise pytest.UsageError(str(error)) from None
        config.stash[ADDRESS] = f"missing: {error}"
    else:
        config.stash[ADDRESS] = str(config.stash[SERVER].folder)


@pytest.hookimpl(tryfirst=True)
def pytest_cmdline_main(config: pytest.Config) -> None:
    """Give the workers of xdist neighbouring tests, so that few fixtures of modules are made in each, if not told."""
    if getattr(config.option, "numprocesses", None) and config.option.dist == "no":
        config.option.dist = "worksteal"


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers(config: pytest.Config) -> int:
    """Return more than the number of processors, because many tests wait for a process or for time to pass.

    On PostgreSQL these are more of the tests: with one more worker than processors, a sixth of the time was idle.
    """
    return (os.cpu_count() or 1) + (2 if config.getoption("--store") == "postgres" else 1)


def pytest_unconfigure(config: pytest.Config) -> None:
    preloaded.close()
    atexit.register(gc.unfreeze)  # duckdb reports objects that are not freed at the end
    if server := config.stash.get(SERVER, None):
        server.stop()


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node: Any) -> None:
    """Pass the address of PostgreSQL to a worker of xdist."""
    node.workerinput["postgres"] = node.config.stash[ADDRESS]


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Leave out modules of which no test can run: without slow tests, or on PostgreSQL without a test of it."""
    only_slow, on_postgres = config.option.markexpr == "slow", config.getoption("--store") == "postgres"
    if collection_path.suffix != ".py" or not (only_slow or on_postgres):
        return None
    text = collection_path.read_text("utf-8")
    of_server = OF_SERVER in collection_path.parents and not config.getoption("--long")
    of_sqlite = ONLY_ON_SQLITE.search(text) is not None or (of_server and "on_both" not in text)
    of_sqlite &= '"postgres"' not in text  # of a single test
    return (only_slow and "slow" not in text) or (on_postgres and of_sqlite) or None


def pytest_collection(session: pytest.Session) -> None:
    """Import a share of the tests first in each worker of xdist, which then finds those of the others compiled."""
    given = getattr(session.config, "workerinput", None)
    if given is None or session.config.args != session.config.getini("testpaths"):
        return
    # Not by `rglob`, which finds five times as many in the packages of tests/clients.
    found = (file for depth in range(4) for file in TESTS.glob("*/" * depth + "test_*.py"))
    files = sorted(file for file in found if not pytest_ignore_collect(file, session.config))
    for file in files[int(given["workerid"][2:]) :: given["workercount"]]:
        with suppress(Exception, pytest.skip.Exception):  # it is reported when pytest collects the file
            import_module(".".join(file.relative_to(TESTS.parent).with_suffix("").parts))


@pytest.hookimpl(trylast=True)
def pytest_collection_finish() -> None:
    """Exclude what is imported by now from garbage collection, which takes a tenth of the time otherwise."""
    gc.freeze()
    gc.set_threshold(20_000, 20, 50)


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Deselect tests of the other store, slow or long ones, and on PostgreSQL what shows nothing more than on SQLite.

    Slow tests become the first, those that say how long they take before others, so that no processor is idle at the
    end while one of them runs.
    """
    long = config.getoption("--long")
    left_out_marks = {"slow": not (long or config.getoption("--slow")), "long": not long}
    store = config.getoption("--store")
    begun: set[str] = set()

    def belongs(item: pytest.Item) -> bool:
        if any(left_out_marks.get(mark.name) for mark in item.iter_markers()):
            return False
        only = item.get_closest_marker("only_on")
        if only is not None:
            return store in only.args
        return store == "sqlite" or _differs_on_postgres(item, begun, long=long)

    unnamed = {item.path for item in items if item.get_closest_marker("slow")}
    if silent := [path.name for path in unnamed if "slow" not in path.read_text("utf-8")]:
        raise pytest.UsageError(f"Write the mark `slow` in {silent}: -m slow reads no other modules.")
    left_out = [item for item in items if not belongs(item)]
    if left_out:
        config.hook.pytest_deselected(items=left_out)
        gone = {*left_out}
        items[:] = [item for item in items if item not in gone]
    items.sort(key=_place)


def _place(item: pytest.Item) -> int:
    mark = item.get_closest_marker("slow")
    return 1 if mark is None else -mark.kwargs.get("seconds", 0)


def _differs_on_postgres(item: pytest.Item, begun: set[str], *, long: bool) -> bool:
    """Return whether a test runs on PostgreSQL too. `begun`: the functions with a case that does.

    It opens a store, and is the first case of its function: what knows a database is below what other cases vary. Slow
    ones and those of the server are marked `on_both`, as are functions of which each case makes other statements:
    tests/store/copying/test_same_responses.py requests every endpoint, page and form on both.
    """
    if item.get_closest_marker("unbuffered"):
        return True
    if "template" not in getattr(item, "fixturenames", ()):
        return False
    if long or item.get_closest_marker("on_both"):
        return True
    function = item.nodeid.partition("[")[0]
    above = item.get_closest_marker("slow") and TESTS / "store" not in item.path.parents
    if function in begun or above or OF_SERVER in item.path.parents:
        return False
    begun.add(function)
    return True


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Make each round of a test a test of its own, so that one that fails can be run again."""
    if (rounds := metafunc.definition.get_closest_marker("rounds")) is not None:
        metafunc.parametrize("number", range(rounds.args[metafunc.config.getoption("--long")]))


@pytest.fixture(scope="session")
def template(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[databases.Template]:
    """Create a migrated database once per worker, which is copied for each test."""
    if request.config.getoption("--store") == "sqlite":
        yield databases.SqliteTemplate(tmp_path_factory.mktemp("template"))
        return
    address = request.config.stash[ADDRESS]
    if address.startswith("missing: "):
        pytest.skip(address.removeprefix("missing: "))
    made = databases.PostgresTemplate(Path(address), os.environ.get("PYTEST_XDIST_WORKER", "main"))
    yield made
    made.close()


Sample = databases.Filled[FixtureSummary]


@pytest.fixture(scope="session")
def sample(template: databases.Template, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sample]:
    """Load the fixtures once per worker; the database of a test that asks for this one is a copy of it."""

    def fill(store: Store) -> FixtureSummary:
        return store.write(lambda: fixtures.load(now=NOW)).result()

    with databases.filled(template, tmp_path_factory.mktemp("sample"), fill) as sample:
        yield sample


@pytest.fixture
def new_database(
    request: pytest.FixtureRequest, template: databases.Template, tmp_path: Path
) -> Iterator[Callable[..., str]]:
    """Return a function that creates a database and returns its URL; with `migrated=False` it has no tables.

    It is a copy of the `sample`, or of the module's own `prefilled`, if the test asks for one of these.
    """
    likes = [request.getfixturevalue(name).url for name in ("sample", "prefilled") if name in request.fixturenames]
    like = likes[0] if likes else ""
    with databases.Maker(template, tmp_path, like) as maker:
        yield maker.make


@pytest.fixture
def made(prefilled: databases.Filled[Any]) -> Any:
    """Return what the module's `prefilled` made, which is in the test's copy of that database."""
    return copy.deepcopy(prefilled.made)


@pytest.fixture
def store_url(new_database: Callable[..., str]) -> str:
    """Return the URL of a new, migrated database."""
    return new_database()


@pytest.fixture
def file(store_url: str) -> Path:
    """Return the path of the new database, on SQLite."""
    return Path(store_url.removeprefix("sqlite:///"))


@pytest.fixture
def store(template: databases.Template, store_url: str) -> Iterator[Store]:
    """Open a store on a new, migrated database with a log of calls."""
    template.make_log(store_url)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(files, "QUICK_CHECK_BYTES", -1)  # a third of opening; the file is a copy of an intact one
        opened = opening.connect(store_url)
    with opened:
        yield opened


@pytest.fixture
def clock() -> MovableClock:
    """Return a clock that does not move by itself."""
    return MovableClock(NOW, speed=0)


@pytest.fixture
def world(sample: Sample) -> dict[str, str]:
    """Have the fixtures in the store; return the tokens by their keys in accounts.toml."""
    return dict(sample.made.tokens)


@pytest.fixture
def bounds(monkeypatch: pytest.MonkeyPatch) -> Bounds:
    """Lower bounds, sizes and pauses of the program."""
    return Bounds(monkeypatch)


@pytest.fixture
def long(request: pytest.FixtureRequest) -> bool:
    """Return whether `--long` was given."""
    return bool(request.config.getoption("--long"))


@pytest.fixture(scope="session")
def seed(request: pytest.FixtureRequest) -> int:
    """Return the seed of random tests."""
    return int(request.config.getoption("--seed"))


@pytest.fixture(scope="session")
def shared_data() -> Callable[[str], Path]:
    """Return a function that finds shared data beside the project, and skips the test if it is absent."""
    given = os.environ.get("MUSICSVC_SHARED_DATA")
    root = Path(given) if given else Path(__file__).resolve().parents[2] / "shared" / "data"

    def find(name: str) -> Path:
        if not (root / name).exists():
            pytest.skip(f"shared data {name} is not beside the project (MUSICSVC_SHARED_DATA points elsewhere)")
        return root / name

    return find


@pytest.fixture
def start_server(aiohttp_client: AiohttpClient, store: Store, clock: MovableClock) -> StartServer:
    """Starts servers, by default over the store and the clock of the test, that end with the test."""
    opened, stopped = store, clock

    async def start(
        settings: Settings | None = None, *, store: Store | None = None, clock: Clock | None = None
    ) -> Client:
        server = ServiceServer(store or opened, clock or stopped, settings)
        client: TestClient[BaseRequest, None] = await aiohttp_client(server, connector=connector())
        return Client(client.session, str(server.make_url("")))

    return start


@pytest.fixture
async def anonymous(start_server: StartServer) -> Client:
    """A client without a token, of a server of its own."""
    return await start_server()


@pytest.fixture
def client(anonymous: Client, store: Store, clock: MovableClock) -> Client:
    """Return a client with the token of ann@label.test, an account with API access."""
    return anonymous.holding(person(store, clock, "ann@label.test")[1])
