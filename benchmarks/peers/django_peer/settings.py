"""Settings of the project."""

import os

ALLOWED_HOSTS = ["127.0.0.1"]
DATABASES = {"default": {"ENGINE": "django.db.backends.sqlite3", "NAME": os.environ["CATALOG"], "CONN_MAX_AGE": None}}
DEBUG = False
INSTALLED_APPS = ["rest_framework", "django_peer"]
MIDDLEWARE = ["django.middleware.security.SecurityMiddleware", "django.middleware.common.CommonMiddleware"]
REST_FRAMEWORK = {
    "DEFAULT_AUTHENTICATION_CLASSES": ["django_peer.authentication.TokenAuthentication"],
    "DEFAULT_PAGINATION_CLASS": "django_peer.pagination.Pages",
    "DEFAULT_PERMISSION_CLASSES": ["rest_framework.permissions.IsAuthenticated"],
    "DEFAULT_RENDERER_CLASSES": ["rest_framework.renderers.JSONRenderer"],
    "UNAUTHENTICATED_USER": None,
}
ROOT_URLCONF = "django_peer.urls"
SECRET_KEY = "not a secret"  # noqa: S105 - it signs nothing
USE_TZ = True
