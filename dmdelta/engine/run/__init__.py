"""Running a task: the pipelines of its sources, turn by turn, and how they are assembled."""
