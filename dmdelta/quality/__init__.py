"""Data quality of silver: expectations on its rows, and the comparison with the source.

Owns suites, the evaluation of expectations (the only importer of Great Expectations), results, the canonical text of
rows, and the decisions from comparing them. Must not know how rows are written to silver.
"""
