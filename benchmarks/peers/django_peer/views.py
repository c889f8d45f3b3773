"""Views of the lists."""

from django.db.models import Count, OuterRef, Prefetch, Subquery
from rest_framework.generics import ListAPIView

from django_peer.models import Album, AlbumArtist, Artist, Track, TrackArtist
from django_peer.serializers import AlbumSerializer, ArtistSerializer


def count_of(table):
    rows = table.objects.filter(artist=OuterRef("pk")).order_by().values("artist")
    return Subquery(rows.annotate(number=Count("*")).values("number"))


class AlbumList(ListAPIView):
    queryset = Album.objects.order_by("-id").prefetch_related(
        "credits__artist", Prefetch("tracks", Track.objects.select_related("counter")), "tracks__credits__artist"
    )
    serializer_class = AlbumSerializer


class ArtistList(ListAPIView):
    queryset = Artist.objects.annotate(albums_count=count_of(AlbumArtist), tracks_count=count_of(TrackArtist)).order_by(
        "-id"
    )
    serializer_class = ArtistSerializer
