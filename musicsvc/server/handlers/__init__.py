"""Request handlers: functions that call the store and build the response, with one module per resource."""
