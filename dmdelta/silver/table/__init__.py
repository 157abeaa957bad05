"""A silver table: its location, its creation and its position."""
