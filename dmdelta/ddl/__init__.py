"""The effect of MySQL's and MariaDB's DDL on the lakehouse: types, the tables a statement touches, schema evolution.

Pure: text and frozen values in, frozen plans out. Parses statements with its own small tokenizer, because a statement
must never be misread, or refused because of a clause that is irrelevant here. Knows nothing of Spark or of the tables
in the lakehouse.
"""
