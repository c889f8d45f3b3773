"""The private parts of aiohttp that musicsvc/server/network relies on exist.

`pyproject.toml` allows one minor version of aiohttp. Before that bound is raised, run this test and those beside it,
which show how these parts behave: queues of requests and of errors, their bounds, timeouts and the stop of a server.
"""

from aiohttp import http_exceptions, streams, web
from aiohttp.web_protocol import RequestHandler, _ErrInfo

ATTRIBUTES = (
    *("_current_request", "_loop", "_max_msg_queue_size", "_messages", "_msg_queue_resume_size", "_request_count"),
    *("_task_handler", "_upgraded", "_waiter"),
)
METHODS = ("connection_made", "data_received", "pause_writing", "resume_writing", "eof_received", "connection_lost")


def test_each_private_name_exists() -> None:
    slots = {name for kind in RequestHandler.__mro__ for name in getattr(kind, "__slots__", ())}
    assert {*ATTRIBUTES} <= slots
    assert all(callable(getattr(RequestHandler, name)) for name in (*METHODS, "finish_response", "force_close"))
    assert isinstance(RequestHandler.writing_paused, property)
    assert hasattr(RequestHandler, "ssl_context")
    assert _ErrInfo(400, http_exceptions.HttpProcessingError(), "text").status == 400
    assert callable(web.Server._make_request)
    assert streams.EMPTY_PAYLOAD.is_eof()
