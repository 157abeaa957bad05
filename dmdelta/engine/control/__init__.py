"""Commands to a running task: sent through the control socket or dm_meta, executed, and supervised."""
