"""The report card of a demo: points that judge the requests of clients, and nothing else, so the card is repeatable."""
