"""Tables of security events and of logged API calls. On SQLite, the calls are in a separate database file."""

from peewee import (
    SQL,
    BigAutoField,
    BigIntegerField,
    BlobField,
    BooleanField,
    CompositeKey,
    DoubleField,
    IntegerField,
    Model,
    TextField,
)

from musicsvc.store.engine.sql import CurrentDatabase
from musicsvc.store.models.table import Table


class SecurityEvent(Table):
    """A logged action on an account or token. It has no foreign keys, so it outlives a deleted account or token."""

    id = BigAutoField()
    at = BigIntegerField(index=True)
    kind = TextField()
    account_id = BigIntegerField(null=True)
    token_id = BigIntegerField(null=True)
    actor = TextField()
    reason = TextField(null=True)
    actor_id = BigIntegerField(null=True)  # the administrator, or other account, who acted

    class Meta:
        table_name = "security_event"


SecurityEvent.add_index(SecurityEvent.index(SecurityEvent.account_id, SecurityEvent.at, name="security_event_account"))
SecurityEvent.add_index(SecurityEvent.index(SecurityEvent.token_id, SecurityEvent.at, name="security_event_token"))


class LogTable(Model):
    """The base class of the tables of the activity log, which on SQLite are in a separate database file."""

    class Meta:
        database = CurrentDatabase()
        legacy_table_names = False


class Activity(LogTable):
    """A logged API call."""

    id = BigAutoField()
    at = BigIntegerField(index=True)
    request_id = TextField(index=True)
    account_id = BigIntegerField(null=True)
    token_id = BigIntegerField(null=True)
    address = TextField()
    method = TextField()
    route = TextField(null=True)
    resource = TextField(null=True)
    status = IntegerField()
    retry_after = IntegerField(null=True)
    milliseconds = DoubleField()
    size = BigIntegerField()
    limits_apply = BooleanField()  # rate limits and abuse rules apply
    private = BooleanField()  # resources of this type can be private
    calls = IntegerField(default=1, constraints=[SQL("DEFAULT 1")])


Activity.add_index(
    Activity.index(
        Activity.account_id, Activity.at, name="activity_account", where=Activity.account_id.is_null(is_null=False)
    )
)
Activity.add_index(
    Activity.index(
        Activity.token_id, Activity.at, name="activity_token", where=Activity.token_id.is_null(is_null=False)
    )
)
Activity.add_index(Activity.index(Activity.address, Activity.at, name="activity_address"))
Activity.add_index(Activity.index(Activity.at, name="activity_refused", where=Activity.status >= 400))  # noqa: PLR2004 - an HTTP status
Activity.add_index(
    Activity.index(
        Activity.account_id,
        Activity.resource,
        Activity.at,
        name="activity_read",
        where=Activity.private & (Activity.status < 400),  # noqa: PLR2004 - an HTTP status
    )
)


class Period(LogTable):
    """The key of a sum: an hour or a day (`hours`) from `hour` on, and a token, an address, a route or a status."""

    dimension = BigIntegerField()
    hours = BigIntegerField()
    hour = BigIntegerField()
    key = TextField()


class ActivitySum(Period):
    """The calls of an hour or a day. `counted` (toward the limit) and `denied` are, for a day, those of one hour."""

    calls = BigIntegerField()
    refused_401 = BigIntegerField()
    refused_403 = BigIntegerField()
    refused_404 = BigIntegerField()
    refused_429 = BigIntegerField()
    counted = BigIntegerField()
    denied = BigIntegerField()
    first_at = BigIntegerField()
    last_at = BigIntegerField()

    class Meta:
        table_name = "activity_sum"
        primary_key = CompositeKey("dimension", "hours", "hour", "key")


class ActivityObjects(Period):
    """The different objects of the same calls: hashes of 8 bytes, at most a fixed number of them."""

    hashes = BlobField()

    class Meta:
        table_name = "activity_objects"
        primary_key = CompositeKey("dimension", "hours", "key", "hour")


class ActivityProgress(LogTable):
    """One row: calls with ids above `newest`, and those up to `oldest`, are not in the sums yet."""

    newest = BigIntegerField(primary_key=True)
    oldest = BigIntegerField()

    class Meta:
        table_name = "activity_progress"


LOG_TABLES: tuple[type[LogTable], ...] = (Activity, ActivitySum, ActivityObjects, ActivityProgress)
