"""The data of a person: delete an account with all of it, export it, erase a listener."""
