"""What clients may send and what they get, as schemas; nothing unchecked goes past them."""
