"""The layers of a request before and around Django: its version, its body, limits, errors.

Other rooms raise `api_errors`; `versions` has the table of versions. It imports `db`, and no REST framework view.
"""
