"""What MySQL's and MariaDB's DDL means for the lakehouse: types, the tables a statement touches, schema evolution.

Pure: text and frozen values in, frozen plans out. Reads statements by a small tokenizer of its own, because a
statement must never be misread or refused for a clause that does not matter here. Knows nothing of Spark or of tables
as they are in the lakehouse.
"""
