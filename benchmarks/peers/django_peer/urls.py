"""Paths of the lists."""

from django.urls import path

from django_peer.views import AlbumList, ArtistList

urlpatterns = [
    path("api/v1/albums", AlbumList.as_view(), name="albums"),
    path("api/v1/artists", ArtistList.as_view(), name="artists"),
]
