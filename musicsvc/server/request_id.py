"""The id of the request that the current task processes, for log lines."""

from contextvars import ContextVar

current: ContextVar[str | None] = ContextVar("musicsvc_request_id", default=None)
