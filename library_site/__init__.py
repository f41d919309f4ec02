"""The common code of all apps: settings, HTTP layers, databases, jobs, monitoring. It imports no app."""
