"""The composition root: the only place that knows all stages.

Opens a task from its spec, starts one relay process and one landing and one applying loop per source, hands each loop
what the one before it finished, stops them all together, and answers questions about a task. Decides nothing about
binlogs, tables or checkpoints: the packages below do.
"""
