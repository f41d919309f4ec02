"""Work that is done later, by one worker at a time: rows under a lease, when to try again, and expired rows."""
