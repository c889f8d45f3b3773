"""Forms and queries of pages."""
