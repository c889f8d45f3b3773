"""The report card of a demo: points that evaluate requests of clients, and nothing else, so the card is repeatable."""
