"""The endpoints of the API, in one module per kind of resource. The module `table` collects all of them."""
