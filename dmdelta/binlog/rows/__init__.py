"""From table maps and rows events to batches of row changes; also the decoders that are generated for a table."""
