"""Request handlers: functions that call the store and shape the response, one file per resource."""
