"""MySQL and MariaDB binlogs to Delta Lake. The folder list is the architecture; ARCHITECTURE.md is its page."""

__version__ = "0.1.0"
