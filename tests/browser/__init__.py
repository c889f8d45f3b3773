"""A package, so that its tests share one Chromium that ends with them: for pytest, a plain folder is no scope."""
