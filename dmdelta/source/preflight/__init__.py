"""Preflight checks of a server, its account and its tables."""
