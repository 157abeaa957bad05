"""What a task did lately, and the page that shows it: gathered from the lakehouse, laid out without it.

`gather` reads, `facts` is what was read, all else is pure: facts in, text out.
"""
