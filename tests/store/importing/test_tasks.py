"""The queue of uploaded files: what is left by a process that was killed, and what nobody needs any more."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from musicsvc.clock import DAY, MovableClock
from musicsvc.errors import Conflict
from musicsvc.store.accounts import users
from musicsvc.store.engine.store import Store
from musicsvc.store.importing.tasks import queue
from musicsvc.store.importing.tasks.uploads import Place, chosen_pairs
from musicsvc.store.importing.tasks.work import CONTINUE, STOPPING, Worker
from musicsvc.store.importing.undoing import runs
from musicsvc.store.models import Artist, ImportTask, Track


class Office:
    """A place with the file of an account, and a process that works there."""

    def __init__(self, store: Store, clock: MovableClock, folder: Path) -> None:
        self.store, self.clock = store, clock
        self.place = Place.build(folder, store.url)
        self.user = self.do(lambda: users.create("ann@label.test", api_access=True, now=clock.now()).id)
        self.worker = Worker(store, self.place, clock, lambda: False)

    def do(self, unit: Callable[[], Any]) -> Any:
        return self.store.write(unit).result()

    def upload(self, content: str = "Title,Artist\nAir,Trio\nBolero,Trio\n") -> int:
        with self.place.locked(self.user) as folder:
            (folder / "rows.csv").write_text(content)
        create = lambda: queue.create(self.user, "catalog", "my.csv", "rows.csv", self.place.name, self.clock.now())  # noqa: E731 - short
        return int(self.do(create))

    def task(self) -> ImportTask:
        found: ImportTask = self.store.read(ImportTask.get).result()
        return found

    def files(self) -> list[str]:
        return sorted(file.name for file in self.place.folder.glob("*/*"))


@pytest.fixture
def office(store: Store, clock: MovableClock, tmp_path: Path) -> Office:
    return Office(store, clock, tmp_path)


def test_what_a_killed_process_worked_on_is_interrupted_and_can_be_continued(office: Office) -> None:
    task = office.upload()
    office.worker.work()
    office.do(lambda: queue.start(office.task()))
    assert office.do(lambda: queue.claim(task))
    run = office.do(lambda: runs.start("catalog", "my.csv", office.user, {}, office.clock.now(), "page"))
    office.do(lambda: queue.beat(task, 40, run))
    with office.place.locked(office.user):  # as long as a process works, its task goes on
        office.worker.settle()
        assert office.task().state == "running"
    office.worker.settle()
    assert (office.task().state, queue.options_of(office.task().report)["problem"]) == ("stopped", queue.INTERRUPTED)
    assert office.store.read(lambda: runs.get(run)).result().state == "stopped"
    assert office.files() == ["rows-refused.csv", "rows.csv"]
    office.do(lambda: queue.start(office.task()))
    office.worker.work()
    assert office.task().state == "done"
    names = office.store.read(lambda: [track.name for track in Track.select().order_by(Track.id)]).result()
    assert names == ["Air", "Bolero"]
    assert office.files() == ["rows-refused.csv"]


@pytest.mark.parametrize("stop", [False, True])
def test_what_a_machine_worked_on_that_is_lost_ends_after_two_days(office: Office, tmp_path: Path, stop: bool) -> None:
    task = office.upload()
    office.worker.work()
    office.do(lambda: queue.start(office.task()))
    assert office.do(lambda: queue.claim(task))
    run = office.do(lambda: runs.start("catalog", "my.csv", office.user, {}, office.clock.now(), "page"))
    office.do(lambda: queue.beat(task, 40, run))
    if stop:
        office.do(lambda: queue.stop(office.task()))
    office.place = Place(tmp_path / "another machine")
    office.worker = Worker(office.store, office.place, office.clock, lambda: False)
    office.clock.advance(2 * DAY - 1)
    with pytest.raises(Conflict, match="An import of yours is under way"):
        office.upload()
    office.worker.settle()
    assert office.task().state == ("stopping" if stop else "running")  # it may take long
    office.clock.advance(1)
    office.worker.settle()
    assert office.store.read(lambda: runs.get(run)).result().state == "stopped"
    office.upload()
    office.worker.work()
    assert (office.task().step, office.task().state) == ("check", "done")


def test_a_process_that_was_killed_by_a_file_does_not_read_it_again(office: Office) -> None:
    task = office.upload()
    assert office.do(lambda: queue.claim(task))
    office.worker.settle()
    office.worker.work()
    assert (office.task().step, office.task().state) == ("check", "stopped")


@pytest.mark.parametrize(("whole", "problem"), [(True, STOPPING), (False, "You stopped it.")])
def test_what_must_stop_does_not_open_its_file_any_more(office: Office, whole: bool, problem: str) -> None:
    """Opening a file reads its headings and first rows, which takes as long as the file wants."""
    task = office.upload()
    (office.place.folder / str(office.user) / "rows.csv").unlink()

    def is_stopping() -> bool:
        office.do(lambda: queue.stop(ImportTask.get_by_id(task)))
        return whole

    Worker(office.store, office.place, office.clock, is_stopping).work()
    assert (office.task().state, queue.options_of(office.task().report)["problem"]) == ("stopped", problem)


def test_a_file_is_deleted_after_a_day_and_once_nothing_names_it(office: Office) -> None:
    office.upload()
    office.worker.work()
    office.clock.advance(DAY - 1)
    office.worker.settle()
    assert office.files() == ["rows-refused.csv", "rows.csv"]
    office.clock.advance(1)
    office.worker.settle()
    assert (office.files(), office.store.read(ImportTask.select().count).result()) == ([], 0)
    (office.place.folder / str(office.user) / "left.csv").touch()
    assert office.place.users() == [office.user]
    office.worker.settle()
    assert (office.files(), office.place.users()) == ([], [])  # a folder alone costs nothing each minute


def test_an_undo_of_a_killed_process_is_interrupted_although_it_has_no_file(office: Office) -> None:
    def request() -> int:
        run = runs.start("catalog", "my.csv", office.user, {}, office.clock.now(), "cli")
        runs.end_run(run, "import.done", office.clock.now(), "cli")
        return queue.request_undo(runs.get(run), office.user, office.place.name, office.clock.now())

    assert office.do(lambda: queue.claim(request()))
    office.worker.settle()
    assert office.task().state == "stopped"
    office.clock.advance(DAY)
    office.worker.settle()
    assert office.store.read(ImportTask.select().count).result() == 0


def test_a_folder_in_use_is_neither_locked_twice_nor_worked_on(office: Office) -> None:
    office.upload()
    with office.place.locked(office.user), pytest.raises(Conflict), office.place.locked(office.user):
        pass
    with office.place.locked(office.user):
        office.worker.work()
        assert office.task().state == "waiting"
    office.worker.work()
    assert office.task().state == "done"


def test_uploaded_files_stay_in_their_place_when_the_password_of_the_database_changes(tmp_path: Path) -> None:
    urls = [f"postgresql://{login}@host/{name}" for login, name in (("u:a", "music"), ("u:b", "music"), ("u:a", "x"))]
    before, after, other = (Place.build(tmp_path, url).folder for url in urls)
    assert before == after != other


def test_a_column_that_was_ignored_stays_ignored_when_another_one_is() -> None:
    columns = [
        {"column": "Work", "field": None, "guess": "track"},
        {"column": "Title", "field": "track", "guess": None},
    ]
    chosen = chosen_pairs("catalog", columns, ["Work="], lambda _: "")
    assert chosen == ["Work=", "Title="]
    shown = [{**each, "field": None} for each in columns]
    assert chosen_pairs("catalog", shown, chosen, lambda _: "") == ["Work=", "Title="]
    assert chosen_pairs("catalog", shown, chosen, lambda number: ("track", "")[number]) == ["Title="]


def test_a_check_tells_what_is_guessed_of_a_column_that_is_ignored(office: Office) -> None:
    office.upload()
    office.worker.work()
    office.do(lambda: queue.check_again(office.task(), {"pairs": ["Title="]}))
    office.worker.work()
    columns = queue.options_of(office.task().report)["columns"]
    found = [(each["column"], each["field"], each["guess"]) for each in columns]
    assert found == [("Title", None, "track"), ("Artist", "artist", "artist")]


@pytest.mark.slow
@pytest.mark.parametrize("step", [queue.CHECK, queue.IMPORT])
def test_a_stop_is_noticed_between_two_rows_that_are_far_apart(office: Office, step: str) -> None:
    asked = 0

    def is_stopping() -> bool:
        nonlocal asked
        asked += office.task().step == step
        return asked > 2  # after the beginning of the import, and after its first row

    office.upload("Title,Artist\nAir,Trio\n" + "\n" * 400_000 + "Bolero,Trio\n")
    worker = Worker(office.store, office.place, office.clock, is_stopping)
    worker.work()
    if step == queue.IMPORT:
        office.do(lambda: queue.start(office.task()))
        worker.work()
    assert (office.task().step, office.task().state) == (step, "stopped")
    problem = queue.options_of(office.task().report)["problem"]
    assert problem == STOPPING + CONTINUE * (step == queue.IMPORT)
    names = office.store.read(lambda: [track.name for track in Track.select()]).result()
    assert names == (["Air"] if step == queue.IMPORT else [])


def test_the_first_rows_are_shown_with_the_names_that_the_import_makes(office: Office) -> None:
    head = "Track URI,Track Name,Artist URI(s),Artist Name(s),Duration (ms)\n"
    office.upload(
        f'{head}u1,Air,"spotify:artist:1, spotify:artist:2","Ann, Bob",61000\nu2,Rain,spotify:artist:3,"C, D",x\n'
    )
    office.worker.work()
    report = queue.options_of(office.task().report)
    assert [name for name, _ in report["artists"]] == ["C, D", "Ann", "Bob"]
    names = [each["column"] for each in report["columns"]].index("Artist Name(s)") + 1
    assert [row[names] for row in report["rows"]] == ["Ann; Bob", "C, D"]


def test_an_undo_that_waited_leaves_what_another_account_has_got_meanwhile(office: Office) -> None:
    office.upload()
    office.worker.work()
    office.do(lambda: queue.start(office.task()))
    office.worker.work()
    run = office.store.read(lambda: runs.newest()[0]).result()
    office.do(lambda: queue.request_undo(run, office.user, office.place.name, office.clock.now()))
    office.do(lambda: Artist.update(manager=None).execute())
    office.worker.work()
    task = office.store.read(lambda: ImportTask.get(ImportTask.step == queue.UNDO)).result()
    assert "belong to another account now" in queue.options_of(task.report)["problem"]
    assert office.store.read(lambda: Track.select().count()).result() == 2
