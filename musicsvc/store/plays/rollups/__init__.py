"""Play and listener counts that are kept up with each play."""
