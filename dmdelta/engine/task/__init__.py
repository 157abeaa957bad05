"""A task put together from its spec, its sources, and the settings that may change while it runs."""
