"""Tables of accounts, requests for access, tokens, sessions, offers of artists, and links to reports and passwords."""

from peewee import SQL, BigAutoField, BigIntegerField, BlobField, BooleanField, CompositeKey, IntegerField, TextField

from musicsvc.store.models.table import Table, link


class User(Table):
    """An account. `email_key` is the normalized e-mail, by which it is found. `purpose`: music, program, or None."""

    id = BigAutoField()
    email = TextField()
    email_key = TextField(unique=True)
    display_name = TextField()
    avatar = TextField(null=True)
    password_hash = TextField(null=True)
    admin = BooleanField(default=False)
    api_access = BooleanField(default=False)
    reports_plays = BooleanField(default=False)
    suspended_at = BigIntegerField(null=True)
    suspended_reason = TextField(null=True)
    created_at = BigIntegerField()
    external_id = TextField(null=True, unique=True)
    purpose = TextField(null=True)

    class Meta:
        table_name = "account"


class AccessRequest(Table):
    """A request for API access and the decision on it. `email_key` is the normalized e-mail."""

    id = BigAutoField()
    email = TextField()
    email_key = TextField(index=True)
    use_case = TextField()
    volume = TextField()
    organization = TextField()
    state = TextField()
    reason = TextField(null=True)
    created_at = BigIntegerField()
    decided_at = BigIntegerField(null=True)


# At most one pending request for each address.
AccessRequest.add_index(
    AccessRequest.index(
        AccessRequest.email_key, unique=True, name="access_request_pending", where=AccessRequest.state == "pending"
    )
)


class Token(Table):
    """A personal access token. Only the SHA-256 of its value is stored, and that of the value before, for a while."""

    id = BigAutoField()
    user = link(User)
    name = TextField()
    digest = BlobField(unique=True)
    last_four = TextField()
    created_at = BigIntegerField()
    expires_at = BigIntegerField()
    last_used_at = BigIntegerField(null=True)
    revoked_at = BigIntegerField(null=True)
    revoked_reason = TextField(null=True)
    scope = TextField(default="read-write", constraints=[SQL("DEFAULT 'read-write'")])
    former_digest = BlobField(null=True, unique=True)
    former_expires_at = BigIntegerField(null=True)


class ReportLink(Table):
    """A link that shows the figures of tracks, albums or artists to anybody, until it expires."""

    id = BigAutoField()
    user = link(User)
    kind = IntegerField()  # 1: tracks, 2: albums, 3: artists
    first_day = IntegerField()  # since 1970-01-01
    end_day = IntegerField()  # the day after the last one
    created_at = BigIntegerField()
    expires_at = BigIntegerField()
    period = TextField(null=True)  # moves along in place of these days, as it was then
    programs = BooleanField(default=False, constraints=[SQL("DEFAULT FALSE")])  # may read it, too


class ReportLinkSubject(Table):
    """A track, album or artist that a link shows, by its id; it may have been deleted."""

    report_link = link(ReportLink, index=False)
    position = IntegerField()
    subject = BigIntegerField()

    class Meta:
        primary_key = CompositeKey("report_link", "position")


class ArtistOffer(Table):
    """An offer to manage artists: those in `ArtistOfferArtist` or, without any, all that the account manages.

    `recipient`: the account with the e-mail, if there was one. Without `email`, the account asks the administrators to
    take its artists; this has no end.
    """

    id = BigAutoField()
    user = BigIntegerField(column_name="user_id", index=True)
    recipient = BigIntegerField(column_name="recipient_id", null=True, index=True)
    email = TextField(null=True)
    note = TextField(null=True)
    created_at = BigIntegerField()
    expires_at = BigIntegerField(null=True, index=True)


# At most one request to the administrators by each account.
ArtistOffer.add_index(
    ArtistOffer.index(ArtistOffer.user, unique=True, name="artist_offer_asked", where=ArtistOffer.email.is_null())
)


class ArtistOfferArtist(Table):
    """An artist that is offered, by its id; it may have been deleted, or have another manager."""

    artist_offer = link(ArtistOffer, index=False)
    artist = BigIntegerField(column_name="artist_id")

    class Meta:
        primary_key = CompositeKey("artist_offer", "artist")


class PasswordLink(Table):
    """A one-time link to set a password, at most one for each account. Only the SHA-256 of its secret is stored."""

    digest = BlobField(primary_key=True)
    user = link(User, unique=True)
    created_at = BigIntegerField()
    expires_at = BigIntegerField()


class Session(Table):
    """A signed-in browser. Only the SHA-256 of its id is stored."""

    id = BigAutoField()
    user = link(User)
    digest = BlobField(unique=True)
    created_at = BigIntegerField()
    last_used_at = BigIntegerField(index=True)
    address = TextField()
    agent = TextField()


class KeptAnswer(Table):
    """The answer to a request with a key, with the path and the SHA-256 of the body of the request."""

    id = BigAutoField()
    user = BigIntegerField(column_name="user_id")
    key = TextField()
    path = TextField()
    body_hash = BlobField()
    answer = BlobField()
    kept_at = BigIntegerField(index=True)

    class Meta:
        indexes = ((("user", "key"), True), (("user", "id"), False))


class Secret(Table):
    """A random key that all nodes of the installation share."""

    name = TextField(primary_key=True)
    value = BlobField()
