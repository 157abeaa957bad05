"""Reading the tables of a source as they are: the plan, its chunks, and consistent reads."""
