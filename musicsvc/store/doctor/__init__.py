"""The checks of `musicsvc doctor` on the database and the files of an installation."""
