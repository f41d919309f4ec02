"""The layers of a request before and around Django: its version, its body, limits, errors.

`refusals` is what others raise, `versions` the table of versions. It imports the databases, and no REST framework view.
"""
