"""Applying a range of bronze to a silver table: rows, row checks, DDL, renames and shards."""
