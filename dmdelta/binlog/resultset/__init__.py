"""Rows of a binary result set, as VARIANT values and as plain columns."""
