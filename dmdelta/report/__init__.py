"""The recent activity of a task, and the page that shows it: gathered from the lakehouse, rendered without it.

`gather` reads, `facts` holds what was read, everything else is pure: facts in, text out.
"""
