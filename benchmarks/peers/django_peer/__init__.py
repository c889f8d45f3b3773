"""The lists of albums and artists in Django REST framework, written as its tutorial does.

    DJANGO_SETTINGS_MODULE=django_peer.settings CATALOG=FILE \
        gunicorn --chdir benchmarks/peers 'django.core.wsgi:get_wsgi_application()'

It reads the SQLite database of musicsvc and returns the same JSON. Relations are loaded by `prefetch_related`.
"""
