"""The relay process of a source, supervised; and its segments on disk."""
