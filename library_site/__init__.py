"""What all apps share: settings, layers of HTTP, databases, jobs, monitoring. It imports none of them."""
