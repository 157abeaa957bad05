"""The values of a row image: one module for each family of types, and the VARIANT encoding that they end in."""
