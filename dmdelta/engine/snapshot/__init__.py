"""Snapshots of source tables: the initial load, ad-hoc ones, their chunks and their state in dm_meta."""
