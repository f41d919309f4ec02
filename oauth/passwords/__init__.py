"""The passwords of people and apps: how they are hashed, and what stops guessing."""
