"""Background jobs of a server, such as the activity log, abuse rules and backups."""
