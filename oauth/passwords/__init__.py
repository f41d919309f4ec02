"""Password hashers for users and apps, and the lockout against guessing."""
