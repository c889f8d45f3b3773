"""The endpoints, in one module per kind of resource; `table` collects them."""
