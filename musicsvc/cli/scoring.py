"""The report card of a demo as a table on stderr, and as a file of JUnit XML."""

import re
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from xml.etree.ElementTree import Element, SubElement, indent, tostring

from musicsvc.cli import output
from musicsvc.cli.output_file import open_output
from musicsvc.cli.session import Session
from musicsvc.errors import Failure
from musicsvc.server.demo.scoring.card import Card, Report
from musicsvc.server.demo.scoring.point import Result, State, Violation
from musicsvc.server.demo.state import ON_PURPOSE, DemoState
from musicsvc.server.openapi import document
from musicsvc.wording import quantity

SUITE = "musicsvc report card"
NOT_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


class Scoring:
    """The report card of a demo, on the command line."""

    def __init__(self, session: Session, world: str, junit: Path | None) -> None:
        """`world`: the name of the demo's data. `junit`: the file to write, too."""
        self._session = session
        self._junit = junit
        self._card = Card(document.document(), world)
        self._demo: DemoState | None = None

    def begin(self, demo: DemoState) -> None:
        """Write the file, in which nothing is tested yet, and let the demo score its clients.

        Raises Failure or OSError if the file cannot be written.
        """
        self._demo = demo
        if self._junit is not None:
            if self._junit.exists() and not self._junit.is_file():
                raise Failure(f"{self._junit} is not a regular file. Name a file to write.")
            self._write(self._junit, self._card.report())
        demo.score(self._card, self._end)

    def announce(self, root: str) -> None:
        """Say that the server at this URL, which listens now, scores its clients."""
        self._session.echo(f"The demo scores its clients: {root}/demo/score shows the card that it prints at the end.")
        self._session.echo(ON_PURPOSE.format(root))

    def _end(self) -> None:
        """Print the card, and write the file."""
        report = self._card.report()
        for line in _lines(report, self._demo.origin if self._demo else ""):
            self._session.echo(line, always=True)
        if self._junit is not None:
            try:
                self._write(self._junit, report)
            except OSError as error:
                self._session.echo(f"Error: {self._junit} cannot be written: {error.strerror}.", always=True)

    def _write(self, junit: Path, report: Report) -> None:
        with open_output(junit.absolute()) as file:
            file.write(to_xml(report, self._demo.origin if self._demo else ""))


def _lines(report: Report, origin: str) -> Iterator[str]:
    yield (
        f"Report card: {report.score} %, {report.passed} of {quantity(len(report.results), 'point')} passed,"
        f" {quantity(report.requests, 'request')}"
    )
    yield from _table(report)
    for result in report.results:
        if result.state is State.FAILED:
            yield f"{result.point.title}: {result.point.remedy}"
            yield from (f"  {line}" for violation in result.violations for line in _describe(violation, origin))
            yield from _left_out(result)
        elif result.state is State.UNTESTED:
            yield f"{result.point.title}: not tested. {result.point.occasion}"


def _table(report: Report) -> Iterator[str]:
    room = shutil.get_terminal_size().columns if sys.stderr.isatty() else None
    results = report.results
    columns = [
        output.Column("point", [result.point.title for result in results]),
        output.Column("result", [result.state.value for result in results]),
        output.Column("violations", [str(result.number or output.NOTHING) for result in results]),
    ]
    yield from output.headings(columns, room)
    yield from output.lines(columns, room)


def _describe(violation: Violation, origin: str) -> Iterator[str]:
    yield f"{violation.client} {violation.text}:"
    for entry in violation.requests:
        yield f"  {entry.number}. {entry.method} {entry.target}: {entry.status or 'no response'}"
        if (line := entry.curl(origin)) is not None:
            yield f"     {line}"


def _left_out(result: Result) -> Iterator[str]:
    if more := result.number - len(result.violations):
        yield f"  and {quantity(more, 'more violation', 'more violations')}"


def to_xml(report: Report, origin: str) -> bytes:
    """Return the card as JUnit XML, with a test case for each point."""
    states = [result.state for result in report.results]
    counts = {
        "tests": str(len(states)),
        "failures": str(states.count(State.FAILED)),
        "errors": "0",
        "skipped": str(states.count(State.UNTESTED)),
        "time": "0",
    }
    suites = Element("testsuites")
    suite = SubElement(suites, "testsuite", {"name": SUITE, **counts})
    for result in report.results:
        point = result.point
        case = SubElement(suite, "testcase", {"classname": SUITE, "name": point.title, "time": "0"})
        if result.state is State.FAILED:
            message = f"{quantity(result.number, 'violation')}. {point.remedy}"
            lines = [line for violation in result.violations for line in _describe(violation, origin)]
            failure = SubElement(case, "failure", {"message": message, "type": point.name})
            failure.text = _allowed("\n".join([*lines, *_left_out(result)]))
        elif result.state is State.UNTESTED:
            SubElement(case, "skipped", {"message": point.occasion})
    indent(suites)
    written: bytes = tostring(suites, "utf-8", xml_declaration=True)
    return written + b"\n"


def _allowed(text: str) -> str:
    """Return the text with the characters escaped that XML does not allow."""
    return NOT_XML.sub(lambda found: found[0].encode("unicode_escape").decode(), text)
