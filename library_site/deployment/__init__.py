"""What an operator runs: variables, checks of a start, the server, releases, backups, the diagnosis."""
