"""Log lines: one line of JSON or text each, without secrets, of limited length."""

import json
import logging
import re
import sys
from typing import Any, NoReturn

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from musicsvc.clock import MovableClock, isoformat
from musicsvc.server.logs import setup as log_setup
from musicsvc.server.logs.formatting import LONGEST, Formatter
from tests.conftest import NOW

TOKEN = "msvc_" + "a1B2" * 10 + "Zz0009"


TEXT = st.text(st.characters(), max_size=3000) | st.text(
    '\r\n\x1b\x9b\u2028\u202e\x00\x7f\x85\ud800"\\é😀 ', max_size=3000
)


VALUES = TEXT | st.integers() | st.floats() | st.none() | st.booleans() | st.lists(TEXT, max_size=3)


def record(message: str = "hello", name: str = "musicsvc", **more: Any) -> logging.LogRecord:
    return logging.makeLogRecord({"name": name, "levelname": "WARNING", "msg": message} | more)


def fault(text: str) -> logging.LogRecord:
    try:
        fail(text)
    except ValueError:
        return record(exc_info=sys.exc_info())


def fail(text: str) -> NoReturn:
    raise ValueError(text)


def written(found: logging.LogRecord, *, plain: bool) -> bytes:
    """Return the line that is written for a record."""
    return Formatter(text=plain).render(log_setup.message_of(MovableClock(NOW, speed=0), found))


def line(found: logging.LogRecord) -> dict[str, Any]:
    out = written(found, plain=False)
    assert out.count(b"\n") == 1
    return json.loads(out)  # type: ignore[no-any-return]


def text(found: logging.LogRecord) -> str:
    return written(found, plain=True).decode()


@given(TEXT, st.dictionaries(st.sampled_from(["one", "two", "three", "four", "request_id"]), VALUES))
def test_whatever_is_logged_is_one_line_of_json(message: str, more: dict[str, Any]) -> None:
    out = written(record(message, **more), plain=False)
    assert len(out) <= LONGEST
    assert out.endswith(b"}\n")
    assert all(32 <= byte < 127 for byte in out[:-1])
    found = orjson.loads(out)
    assert list(found)[:4] == ["time", "level", "message", "logger"]
    if len(out) < 1000 and not any(0xD800 <= ord(sign) < 0xE000 for sign in message):
        assert found["message"] == message


@given(TEXT, st.dictionaries(st.sampled_from(["one", "two", "three", "four"]), VALUES))
def test_whatever_is_logged_is_one_line_of_printable_text(message: str, more: dict[str, Any]) -> None:
    out = written(record(message, **more), plain=True)
    assert len(out) <= LONGEST
    assert out.decode()[:-1].isprintable()
    assert out.endswith(b"\n")


def test_a_line_has_its_fields_in_order_and_omits_missing_ones() -> None:
    assert line(record()) == {"time": isoformat(NOW), "level": "warning", "message": "hello", "logger": "musicsvc"}
    found = line(record("%s and %s", args=("one", 2), request_id="abc", account=7))
    assert list(found) == ["time", "level", "message", "logger", "request_id", "account"]
    assert (found["message"], found["request_id"], found["account"]) == ("one and 2", "abc", 7)
    told = text(record("one\x1b[31m\r\ntwo", request_id="abc"))
    assert told == f"{isoformat(NOW)} [warning  ] one\\x1b[31m\\r\\ntwo [musicsvc] request_id=abc\n"


def test_a_message_that_does_not_match_its_values_is_logged_unformatted() -> None:
    assert line(record("%s and %s", args=("one",)))["message"] == "%s and %s"


def test_a_value_whose_text_fails_is_replaced() -> None:
    class Silent:
        def __str__(self) -> str:
            raise ValueError("no text")

    logged = record()
    vars(logged)["field"] = Silent()
    assert line(logged)["field"] == "a Silent without a text"


def test_an_exception_is_one_json_line_or_indented_text() -> None:
    found = line(fault("one\ntwo\x1b"))
    assert found["exception"].startswith("Traceback (most recent call last):\n")
    assert found["exception"].endswith("ValueError: one\ntwo\x1b")
    head, *below = text(fault("one\n2026-11-21 [error    ] two\x1b")).splitlines()
    assert head.endswith("hello [musicsvc]")
    assert all(each.startswith("    ") for each in below)
    assert below[-2:] == ["    ValueError: one", "    2026-11-21 [error    ] two\\x1b"]


def test_a_long_traceback_keeps_both_ends() -> None:
    found = line(fault("x" * 5000 + " the end"))["exception"]
    assert found.startswith("Traceback")
    assert found.endswith("the end")
    assert len(found) < 3100


@pytest.mark.parametrize(("fields", "value", "trace"), [(0, 2000, 3000), (1, 1000, 2000), (8, 300, 900), (30, 80, 200)])
def test_values_are_cut_until_the_line_fits(fields: int, value: int, trace: int) -> None:
    logged = fault("x" * 5000)
    vars(logged).update({f"field{number}": "y" * 5000 for number in range(fields)})
    found = line(logged)
    assert {len(found[f"field{number}"]) for number in range(fields)} <= {value + 1}
    assert len(found["exception"]) == trace // 3 - (-2 * trace // 3) + 1


@pytest.mark.parametrize(
    "sent",
    [
        TOKEN,
        f"Bearer {TOKEN}",
        f"'bearer  {TOKEN}'",
        "Bearer secret/secret",
        f"x{TOKEN}y",
        "GET /password/secret-secret_secret",
        "http://127.0.0.1:8080/reports/secret.secret failed",
    ],
)
def test_no_token_is_logged(sent: str) -> None:
    for found in (record(sent), record("%s", args=(sent,)), record(field=sent), record(field=[sent]), fault(sent)):
        for out in (json.dumps(line(found)), text(found)):
            assert TOKEN[5:] not in out
            assert "secret" not in out


def test_library_records_lose_extra_fields_and_exception_texts() -> None:
    for name in ("aiohttp.server", "asyncio", "musicsvc.wire", "musicsvcx"):
        found = fault("Authorization: geheim")
        found.name, found.msg, found.args = name, "Unhandled %s\nfuture: <geheim>", ("fault",)
        found.field = "geheim"
        told = line(found)
        assert list(told) == ["time", "level", "message", "logger", "exception"]
        assert (told["message"], told["logger"]) == ("Unhandled fault", name)
        assert re.fullmatch(
            r".*test_formatting.py:\d+ in fault\n.*test_formatting.py:\d+ in fail\nValueError", told["exception"]
        )
        assert "geheim" not in json.dumps(told)
