"""Functions that build the response body of each resource: a dict whose keys are in the documented order."""
