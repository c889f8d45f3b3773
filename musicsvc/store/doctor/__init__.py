"""Doctor checks of the database and of the files of an installation."""
