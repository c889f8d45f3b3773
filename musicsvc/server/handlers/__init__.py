"""Handlers: plain functions that ask the store and shape the answer; one noun a file."""
