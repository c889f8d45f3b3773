"""Secrets of the installation, sessions of browsers, and the record of security events."""
