"""The pages on which people sign in, choose passwords, and manage their account; and the mails to them."""
