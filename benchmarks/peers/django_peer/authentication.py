"""Authentication by a token in the database."""

import hashlib
import time

from rest_framework.authentication import BaseAuthentication, get_authorization_header
from rest_framework.exceptions import AuthenticationFailed, PermissionDenied

from django_peer.models import Token


class TokenAuthentication(BaseAuthentication):
    def authenticate(self, request):
        scheme, _, value = get_authorization_header(request).partition(b" ")
        if scheme.lower() != b"bearer":
            return None
        digest = hashlib.sha256(value).digest()
        token = Token.objects.select_related("user").filter(digest=digest).first()
        if token is None or token.revoked_at is not None or token.expires_at <= time.time() * 1_000_000:
            raise AuthenticationFailed("Unknown token")
        if token.user.suspended_at is not None or not token.user.api_access:
            raise PermissionDenied("No access")
        return token.user, token
