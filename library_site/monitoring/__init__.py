"""What operators watch: health, metrics, traces, reports of errors, and how a process stops."""
