"""The OpenAPI document, generated from routes and schemas; `document.py` puts it together."""
