"""The endpoints, one module a domain; `table` collects them."""
