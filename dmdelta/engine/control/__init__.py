"""Commands to a running task: asked for through dm_meta, listened to, cancelled and supervised."""
