"""The pages to sign in, choose a password and manage an account, and the mails about accounts."""
