"""Tables of imports, and of the rows that each has created or changed, so that it can be undone."""

from peewee import SQL, BigAutoField, BigIntegerField, CompositeKey, IntegerField, TextField

from musicsvc.store.models.accounts import User
from musicsvc.store.models.table import Table, link


class ImportRun(Table):
    """A run of `musicsvc import`. `counts`: JSON with numbers of rows by kind.

    `first_slot` and `last_slot`: the first and the last half minute (since 1970) with plays of this import.
    """

    id = BigAutoField()
    kind = TextField()  # catalog, plays, follows or playlists
    file = TextField()
    user = BigIntegerField(null=True, column_name="user_id")
    state = TextField()  # running, done, stopped, undoing, partly (undone), undone
    rows = BigIntegerField(default=0)
    counts = TextField(default="{}")
    first_slot = BigIntegerField(null=True)
    last_slot = BigIntegerField(null=True)
    started_at = BigIntegerField()
    undone_at = BigIntegerField(null=True)

    class Meta:
        indexes = ((("user", "id"), False),)


class ImportTask(Table):
    """A file that an account has uploaded, or an undo that it requested. An account has at most one of each.

    A file is first checked (a dry run), then imported. `place`: the machine and the folder with the file, which is
    there under the name `stored_as`. `options` and `report`: JSON. `run`: the id of the import, once it has begun.
    """

    id = BigAutoField()
    user = link(User, index=False)
    step = TextField()  # check, import or undo
    state = TextField(index=True)  # waiting, running, stopping, done or stopped
    kind = TextField()  # of the import
    file = TextField()  # the name that the user gave the file
    place = TextField()
    stored_as = TextField()
    options = TextField(default="{}")
    report = TextField(default="{}")
    percent = IntegerField(default=0)  # of the file, read so far
    run = BigIntegerField(null=True, column_name="run_id")
    created_at = BigIntegerField()


ImportTask.add_index(ImportTask.user, SQL("(step = 'undo')"), unique=True, name="import_task_user_id")


class ImportItem(Table):
    """A record that an import created a row or, with `changes` as JSON, changed it. An undo deletes the record.

    If `changes` is an empty object, the row is the earlier album or an earlier artist of a changed track. The record
    prevents the undo of another import from deleting that album or artist.
    """

    run = BigIntegerField(column_name="run_id")
    kind = TextField()  # the name of the row's table
    item = BigIntegerField()  # the row's id
    changes = TextField(null=True)

    class Meta:
        primary_key = CompositeKey("run", "kind", "item")
        indexes = ((("kind", "item"), False),)


class DivideRule(Table):
    """A rule that divides the names in columns with a heading, for the later imports of an account, or of none (0).

    `heading`: see `headings.key`. `signs`: separated by blanks.
    """

    user = BigIntegerField(column_name="user_id")
    heading = TextField()
    signs = TextField()
    set_at = BigIntegerField()

    class Meta:
        primary_key = CompositeKey("user", "heading")
