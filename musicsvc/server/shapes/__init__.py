"""Build the response body of each resource as a dict, with the keys in the documented order."""
