"""Serializers of artists, tracks and albums."""

from datetime import UTC, datetime

from rest_framework import serializers

from django_peer.models import Album, Artist, Track


class TimeField(serializers.Field):
    def to_representation(self, value):
        return datetime.fromtimestamp(value / 1_000_000, UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


class ArtistSummarySerializer(serializers.ModelSerializer):
    class Meta:
        model = Artist
        fields = ["id", "name", "image_small", "verified"]


class ArtistSerializer(serializers.ModelSerializer):
    model_type = serializers.CharField(default="artist", read_only=True)
    created_at = TimeField()
    albums_count = serializers.IntegerField()
    tracks_count = serializers.IntegerField()

    class Meta:
        model = Artist
        fields = ["id", "name", "image_small", "verified", "model_type", "created_at", "albums_count", "tracks_count"]


class CreditedSerializer(serializers.ModelSerializer):
    artists = serializers.SerializerMethodField()

    def get_artists(self, row):
        return ArtistSummarySerializer([credit.artist for credit in row.credits.all()], many=True).data


class TrackSerializer(CreditedSerializer):
    image = serializers.SerializerMethodField()

    class Meta:
        model = Track
        fields = ["id", "name", "release_date", "image", "duration", "description", "artists"]

    def get_image(self, track):
        return track.image or (track.album.image if track.album else None)


class AlbumSerializer(CreditedSerializer):
    tracks = TrackSerializer(many=True)
    model_type = serializers.CharField(default="album", read_only=True)
    created_at = TimeField()
    plays = serializers.SerializerMethodField()

    class Meta:
        model = Album
        fields = [
            *("id", "name", "image", "release_date", "description", "tracks", "artists"),
            *("model_type", "created_at", "plays", "upc", "label"),
        ]

    def get_plays(self, album):
        return sum(track.counter.plays for track in album.tracks.all() if hasattr(track, "counter"))
