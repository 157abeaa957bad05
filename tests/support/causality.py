"""What the sink's causality holds."""

from dmdelta.sink.execute.causality import Causality


def relations_of(causality: Causality) -> dict[str, str]:
    """Key → root, of all jobs that may not have been executed yet."""
    relations: dict[str, str] = {}
    for _, generation in causality._older:
        relations.update(generation)
    return {**relations, **causality._newest}
