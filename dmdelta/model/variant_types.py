"""The type codes of VARIANT values (Parquet VARIANT encoding, VariantEncoding.md): the first byte of a value."""

NULL = b"\x00"


TRUE = b"\x04"


FALSE = b"\x08"


INT8, INT16, INT32, INT64 = 0x0C, 0x10, 0x14, 0x18


DOUBLE = 0x1C


DECIMAL4, DECIMAL8, DECIMAL16 = 0x20, 0x24, 0x28


DATE = 0x2C


TIMESTAMP, TIMESTAMP_NTZ = 0x30, 0x34


FLOAT = 0x38


BINARY, STRING = 0x3C, 0x40
