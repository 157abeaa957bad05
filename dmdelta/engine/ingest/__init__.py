"""The landing loop: batches of segments to bronze, and the structures of sources that send no column names."""
