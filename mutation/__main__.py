"""Break the code one place at a time, run the tests concerned, and print the breaks that survive."""

from __future__ import annotations

import argparse
import signal
import sys
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING

from mutation import breaks, listed, recording, report
from mutation.choosing import Chooser
from mutation.project import Project
from mutation.running import BrokenBeforeError, judge_all
from mutation.source import Source

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mutation.breaks import Break

HERE = Path(__file__).parent
THIN = HERE / "recording.json"  # in git: the cheapest tests of each function, used without a local recording


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command; return 1 if fewer breaks are caught than required."""
    options = _parser().parse_args(arguments)
    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGTERM, signal.default_int_handler)  # removes copies and processes in any case
    try:
        return int(options.command(Project(options.root.resolve(), options.package, options.store), options))
    except (recording.FailedError, BrokenBeforeError) as error:
        print(error, file=sys.stderr)
        return 2


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser("python -m mutation", description=__doc__)
    parser.add_argument("--root", type=Path, default=Path(__file__).parents[1], help="folder of the project")
    parser.add_argument("--package", default="musicsvc", help="package to break")
    parser.add_argument("--store", choices=["sqlite", "postgres"], default="sqlite", help="store of the tests")
    commands = parser.add_subparsers(required=True)
    record = commands.add_parser("record", help="run tests once, to learn which test executes which code")
    record.set_defaults(command=_record)
    record.add_argument("tests", nargs="*", help="files or folders of tests; default: all tests")
    record.add_argument("--workers", type=int, default=1, help="tests at a time")
    run = commands.add_parser("run", help="break the code and run the tests concerned")
    run.set_defaults(command=_run)
    run.add_argument("--sample", type=int, default=300, help="number of breaks, drawn from all lines of code")
    run.add_argument("--skip", type=int, default=0, help="leave out the first breaks of the sample, which ran before")
    run.add_argument("--seed", type=int, default=1, help="another seed draws other breaks")
    run.add_argument("--semantic", action="store_true", help="try the breaks of semantic.toml, not a sample")
    run.add_argument("--again", action="store_true", help="try the survivors of the last run, not a sample")
    run.add_argument("--module", action="append", default=[], help="draw from this module or folder alone; repeatable")
    run.add_argument("--workers", type=int, default=1, help="breaks at a time, each in a copy of the project")
    run.add_argument("--at-least", type=float, default=95.0, help="percentage of breaks that tests must catch")
    run.add_argument("--budget", type=float, default=60.0, help="seconds of tests that a break is worth")
    run.add_argument("--patience", type=float, default=1.0, help="factor of all time limits, for a busy machine")
    return parser


def _record(project: Project, options: argparse.Namespace) -> int:
    path = project.recording
    began = time.monotonic()
    made, failed = recording.record(project, options.tests, options.workers, recording.Recording.load(path))
    made.save(path)
    if project.root == HERE.parent and not project.options:
        made.thinned().save(THIN)
    for test in failed:
        print(f"not recorded, because it did not pass: {test}")
    print(f"{len(made.seconds)} tests recorded in {path}, {time.monotonic() - began:.0f} s")
    return 0


def _run(project: Project, options: argparse.Namespace) -> int:
    sources = [Source(module, project.source(module)) for module in project.modules()]
    path = project.recording
    recorded = recording.Recording.load(path if path.exists() else THIN).adapted(project)
    chosen = _chosen(project, sources, options)
    chooser = Chooser(recorded, project.root, sources, options.budget)
    results = judge_all(project, chosen, chooser, recorded.seconds, workers=options.workers, patience=options.patience)
    return report.show(results, len(chosen), options.at_least, project.cache / "survivors.json")


def _chosen(project: Project, sources: Sequence[Source], options: argparse.Namespace) -> list[Break]:
    if options.semantic:
        found, unfit = listed.semantic(sources)
        for name in unfit:
            print(f"matches no place of the code, or several: {name}")
        return found
    folders = options.module or [options.package]
    every = [
        each
        for source in sources
        if any(Path(source.path).is_relative_to(folder) for folder in folders)
        for each in breaks.of_module(source)
    ]
    if options.again:
        survivors = report.survivors(project.cache / "survivors.json")
        return list({each.key: each for each in every if each.key in survivors}.values())
    return breaks.sample(every, options.sample, options.seed, listed.equivalent())[options.skip :]


if __name__ == "__main__":
    sys.exit(main())
