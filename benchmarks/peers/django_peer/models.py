"""Tables of the database of musicsvc."""

from django.db import models


class Account(models.Model):
    api_access = models.BooleanField()
    suspended_at = models.BigIntegerField(null=True)
    is_authenticated = True

    class Meta:
        db_table = "account"


class Token(models.Model):
    user = models.ForeignKey(Account, models.CASCADE)
    digest = models.BinaryField(unique=True)
    expires_at = models.BigIntegerField()
    revoked_at = models.BigIntegerField(null=True)

    class Meta:
        db_table = "token"


class Artist(models.Model):
    name = models.TextField()
    image_small = models.TextField(null=True)
    verified = models.BooleanField()
    created_at = models.BigIntegerField()

    class Meta:
        db_table = "artist"


class Album(models.Model):
    name = models.TextField()
    image = models.TextField(null=True)
    release_date = models.TextField(null=True)
    description = models.TextField(null=True)
    created_at = models.BigIntegerField()
    upc = models.TextField(null=True)
    label = models.TextField(null=True)

    class Meta:
        db_table = "album"


class Track(models.Model):
    album = models.ForeignKey(Album, models.SET_NULL, null=True, related_name="tracks")
    name = models.TextField()
    release_date = models.TextField(null=True)
    image = models.TextField(null=True)
    duration = models.BigIntegerField()
    description = models.TextField(null=True)

    class Meta:
        db_table = "track"
        ordering = ["id"]


class TrackPlays(models.Model):
    track = models.OneToOneField(Track, models.CASCADE, primary_key=True, related_name="counter")
    plays = models.BigIntegerField()

    class Meta:
        db_table = "track_plays"


class AlbumArtist(models.Model):
    pk = models.CompositePrimaryKey("album_id", "artist_id")
    album = models.ForeignKey(Album, models.CASCADE, related_name="credits")
    artist = models.ForeignKey(Artist, models.CASCADE, related_name="+")
    position = models.IntegerField()

    class Meta:
        db_table = "album_artist"
        ordering = ["position"]


class TrackArtist(models.Model):
    pk = models.CompositePrimaryKey("track_id", "artist_id")
    track = models.ForeignKey(Track, models.CASCADE, related_name="credits")
    artist = models.ForeignKey(Artist, models.CASCADE, related_name="+")
    position = models.IntegerField()

    class Meta:
        db_table = "track_artist"
        ordering = ["position"]
