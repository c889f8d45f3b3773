"""docs/recover.md has a row for each alarm of the program, and none for an alarm that does not exist."""

import re

from tests.support import alarms
from tests.support.page_commands import text


def rows(heading: str) -> list[list[str]]:
    """Return the cells of the table below a heading, with code in the first two cells without its quotes."""
    found = re.findall(r"^\| (`.*) \|$", text("recover.md", heading), re.MULTILINE)
    return [[cell.strip("`") for cell in row.split(" | ")] for row in found]


def test_each_finding_of_doctor_has_a_cause_and_a_remedy() -> None:
    table = rows("Findings of doctor")

    assert {(check, finding) for check, finding, *_ in table} == alarms.findings()
    assert all(len(row) == 4 and all(row) for row in table)


def test_each_reason_of_readyz_has_a_cause_and_a_remedy() -> None:
    table = rows("Reasons of readyz")

    assert {reason for reason, *_ in table} == alarms.reasons()
    assert all(len(row) == 3 and all(row) for row in table)


def test_each_warning_and_error_of_the_log_has_a_cause_and_a_remedy() -> None:
    table = [row for row in rows("Lines of the log") if len(row) == 3]

    assert {line for line, *_ in table} == alarms.log_lines()
    assert all(map(all, table))


def test_the_page_says_what_is_missing_while_a_background_job_fails() -> None:
    assert {row[0] for row in rows("Lines of the log") if len(row) == 2} == alarms.jobs()
