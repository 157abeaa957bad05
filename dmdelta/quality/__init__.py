"""Whether silver is what it should be: by what is expected of it, and compared with the source.

Owns suites, what an expectation means (the only importer of Great Expectations), results, the text that both sides make
of a row and what follows from comparing. Must not know how rows came to silver.
"""
