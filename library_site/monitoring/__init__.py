"""Monitoring: health, metrics, traces, error reports, and the stop of a process."""
