"""MySQL's words for column types (information_schema.DATA_TYPE), in families whose members grow."""

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
"""Types with a length of the user's."""
CLOCKED = ("time", "datetime", "timestamp")
"""Types with digits of a second."""
