"""What of a server, an account and its tables stands in the way of a task."""
