"""What happens in the library (specification, Section 6)."""

CREATED, UPDATED, DELETED = "book.created", "book.updated", "book.deleted"
# Sent by hand, and not in the stream.
PING = "test.ping"
# Each kind of the stream with a sentence for people.
KINDS = {CREATED: "A book was added.", UPDATED: "A book was changed.", DELETED: "A book was deleted."}
# An endpoint that takes it takes all of the stream.
ALL = "*"
