"""Whether silver is what it should be: comparing it with the source.

Owns the text that both sides make of a row, and what follows from comparing. Must not know how rows came to silver.
"""
