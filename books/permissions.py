"""The permissions of books, and what each action needs: one table for the admin, both versions and operations."""

from collections.abc import Mapping, Sequence

VIEW_BOOK, ADD_BOOK = "books.view_book", "books.add_book"
CHANGE_BOOK, DELETE_BOOK = "books.change_book", "books.delete_book"
VIEW_HISTORY = "books.view_history"
BULK_EDIT, UNDO_OTHERS = "books.bulk_edit_books", "books.undo_others_operations"
MERGE_BOOKS, IMPORT_BOOKS = "books.merge_books", "books.import_books"

ActionPermissions = Mapping[str, Sequence[str]]

# To read books, a credential with the scope is enough. A file of all books is more.
BOOK_ACTIONS: ActionPermissions = {
    "list": [],
    "retrieve": [],
    "export": [VIEW_BOOK],
    "create": [ADD_BOOK],
    "update": [CHANGE_BOOK],
    "partial_update": [CHANGE_BOOK],
    "lend": [CHANGE_BOOK],
    "revert": [CHANGE_BOOK],
    "destroy": [DELETE_BOOK],
    "restore": [ADD_BOOK],
    # What its rows do.
    "bulk": [],
    "merge": [MERGE_BOOKS],
    "import": [IMPORT_BOOKS],
}
# The rows of a bulk request.
BULK_ACTIONS: ActionPermissions = {
    "create": BOOK_ACTIONS["create"],
    "update": BOOK_ACTIONS["partial_update"],
    "delete": BOOK_ACTIONS["destroy"],
}
HISTORY_ACTIONS: ActionPermissions = {"list": [VIEW_HISTORY], "retrieve": [VIEW_HISTORY]}
# Everybody sees and cancels their own operations. Those of others need any of OPERATION_VIEWERS, and UNDO_OTHERS.
OPERATION_VIEWERS = [VIEW_HISTORY, BULK_EDIT]
# An undo restores deleted books, deletes added ones, and changes changed ones.
OPERATION_ACTIONS: ActionPermissions = {
    "list": [],
    "retrieve": [],
    "create": [BULK_EDIT],
    "cancel": [],
    "undo": [ADD_BOOK, CHANGE_BOOK, DELETE_BOOK],
}
# By kind, what an operation needs when it is stored, when a worker starts it, and with each batch.
OPERATION_KINDS: ActionPermissions = {
    "edit": [BULK_EDIT, CHANGE_BOOK],
    "mark": [BULK_EDIT, CHANGE_BOOK],
    "delete": [BULK_EDIT, DELETE_BOOK],
    "undo": OPERATION_ACTIONS["undo"],
    "export": BOOK_ACTIONS["export"],
    "import preview": BOOK_ACTIONS["import"],
    "import check": [IMPORT_BOOKS, ADD_BOOK, CHANGE_BOOK],
    "import": [IMPORT_BOOKS, ADD_BOOK, CHANGE_BOOK],
    # Both are done within the request, which needs what their rows need.
    "bulk": BOOK_ACTIONS["bulk"],
    "merge": BOOK_ACTIONS["merge"],
}
