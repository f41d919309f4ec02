"""Lending by scanner, and the scan box of all pages."""
