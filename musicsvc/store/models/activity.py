"""Tables of security events and of logged API calls. On SQLite, the calls are in a separate database file."""

from peewee import SQL, BigAutoField, BigIntegerField, BooleanField, DoubleField, IntegerField, Model, TextField

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


class Activity(Model):
    """A logged API call. Not a `Table`, because on SQLite the calls are stored in a separate database file."""

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

    class Meta:
        database = CurrentDatabase()
        legacy_table_names = False


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
