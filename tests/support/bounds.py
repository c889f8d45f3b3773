"""Bounds, sizes and pauses of the program that tests lower: the one place that names these constants."""

import pytest

CONSTANTS = {
    "known_tokens": "server.access.authentication.CACHE_SIZE",
    "limited_silence": "limited.process.SILENCE",
    "limited_wait": "limited.process.WAIT",
    "patience_seconds": "server.access.rate_limits.PATIENCE_SECONDS",
    "job_seconds": "server.app.JOB_SECONDS",
    "counters_seconds": "server.freshness.COUNTERS_SECONDS",
    "most_counted": "server.handlers.admin.accounts.MOST_COUNTED",
    "most_withdrawn": "server.handlers.admin.accounts.MOST_WITHDRAWN",
    "evaluation_seconds": "server.jobs.abuse_monitor.EVALUATION_SECONDS",
    "settled": "server.jobs.abuse_monitor.SETTLED",
    "first_pruning_seconds": "server.jobs.activity_writer.FIRST_PRUNING_SECONDS",
    "full_calls": "server.jobs.activity_writer.FULL_CALLS",
    "most_addresses": "server.jobs.activity_writer.MOST_ADDRESSES",
    "most_waiting": "server.jobs.activity_writer.MOST_WAITING",
    "pruning_pause_seconds": "server.jobs.activity_writer.PAUSE_SECONDS",
    "pruning_seconds": "server.jobs.activity_writer.PRUNING_SECONDS",
    "write_seconds": "server.jobs.activity_writer.WRITE_SECONDS",
    "backup_retry_seconds": "server.jobs.backup_scheduler.RETRY_SECONDS",
    "poll_seconds": "server.jobs.import_worker.POLL_SECONDS",
    "max_rejected": "server.network.acceptor.MAX_REJECTED",
    "accept_retry_seconds": "server.network.acceptor.RETRY_SECONDS",
    "max_held": "server.request.bodies.MAX_HELD",
    "known_heads": "server.request.first_steps.HEADS",
    "reads_slice_seconds": "server.request.reads.SLICE_SECONDS",
    "albums_at_once": "server.responses.large.ALBUMS",
    "answer_group": "server.responses.large.GROUP",
    "max_page": "server.responses.large.MAX_PAGE",
    "calls_slice": "store.activity.calls.SLICE",
    "backup_pause_seconds": "store.backups.create.PAUSE_SECONDS",
    "backup_slice_pages": "store.backups.create.SLICE_PAGES",
    "verify_steps": "store.backups.verify.STEPS",
    "largest_album": "store.catalog.album_sizes.LARGEST_ALBUM",
    "most_tracks": "store.catalog.album_sizes.MOST_TRACKS",
    "few_names": "store.dashboards.catalog_search.FEW",
    "most_names": "store.dashboards.dashboards.MOST_NAMES",
    "many_in_table": "store.dashboards.tables.MANY_IDS",
    "table_rows": "store.dashboards.tables.PER_PAGE",
    "popular_track": "store.dashboards.trends.POPULAR",
    "read_one_by_one": "store.dashboards.trends.TOP",
    "comment_gap": "store.engagement.comments.GAP",
    "comment_last": "store.engagement.comments.LAST",
    "idle_seconds": "store.engine.postgres.connections.IDLE_SECONDS",
    "most_patient": "store.engine.postgres.store.MOST_PATIENT",
    "dense": "store.engine.sql.DENSE",
    "shared_timeout": "store.engine.sqlite.file_locks.SHARED_TIMEOUT",
    "quick_check_bytes": "store.engine.sqlite.files.QUICK_CHECK_BYTES",
    "commit_group": "store.engine.sqlite.group_commit.GROUP",
    "busy_seconds": "store.engine.sqlite.store.BUSY_SECONDS",
    "largest_document": "store.importing.files.histories.documents.LARGEST",
    "plays_a_unit": "store.importing.plays.plays.Plays.rows_a_unit",
    "max_in_memory": "store.importing.plays.matching.MAX_IN_MEMORY",
    "rows_a_unit": "store.importing.runner.Kind.rows_a_unit",
    "longest_trial": "store.importing.runner.LONGEST_TRIAL",
    "import_pace": "store.importing.tasks.work.SHARED",
    "undone_at_once": "store.importing.undoing.made_rows.AT_ONCE",
    "restored_at_once": "store.importing.undoing.restoring.AT_ONCE",
    "subjects_per_batch": "store.insights.export_rows.SUBJECTS_PER_BATCH",
    "tracks_per_batch": "store.insights.export_rows.TRACKS_PER_BATCH",
    "first_of_top": "store.insights.tops.FIRST_READ",
    "few_tracks": "store.insights.scopes.FEW_TRACKS",
    "plays_per_part": "store.plays.dumping.PLAYS_PER_PART",
    "plays_per_read": "store.plays.dumping.PLAYS_PER_READ",
    "popular": "store.plays.rollups.blocks.POPULAR",
    "taken_at_once": "store.plays.rollups.withdrawal.TAKEN_AT_ONCE",
    "many_tracks": "store.plays.subjects.MANY",
    "differences_shown": "store.plays.verify.SHOWN",
    "lease_share": "store.rate_limits.shared.SHARE",
    "lease_single": "store.rate_limits.shared.SINGLE",
    "postgres_counts": "store.rate_limits.postgres.MAX_ROWS",
    "counter_lock_seconds": "store.rate_limits.sqlite.LOCK_SECONDS",
    "sqlite_counts": "store.rate_limits.sqlite.MAX_ROWS",
}


class Bounds:
    """Gives constants other values until the test ends."""

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self._patch = patch

    def __call__(self, **values: object) -> None:
        for name, value in values.items():
            self._patch.setattr(f"musicsvc.{CONSTANTS[name]}", value)
