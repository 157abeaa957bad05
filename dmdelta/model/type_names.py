"""MySQL's names of column types (information_schema.DATA_TYPE), grouped in families of increasing size."""

INTEGERS = ("tinyint", "smallint", "mediumint", "int", "bigint")
TEXTS = ("tinytext", "text", "mediumtext", "longtext")
BLOBS = ("tinyblob", "blob", "mediumblob", "longblob")
WHOLE = (*INTEGERS, "bit", "year")
"""Types whose values are whole numbers."""
CHARACTERS = ("char", "varchar", *TEXTS)
"""Types whose values are text in a character set."""
NAMED = ("enum", "set")
"""Types whose values are names in a character set."""
TEXTUAL = (*CHARACTERS, *NAMED)
BYTES = ("binary", "varbinary", *BLOBS)
SIZED = ("char", "varchar", "binary", "varbinary")
"""Types with a user-defined length."""
CLOCKED = ("time", "datetime", "timestamp")
"""Types with fractional seconds."""
WITH_DEFAULT = ("char", "varchar", *NAMED, *INTEGERS, "decimal", "float", "double", "year", "date", "time", "datetime")
"""Types whose literal default is a text that depends on no session."""
