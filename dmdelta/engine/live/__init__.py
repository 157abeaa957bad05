"""Live reads: tables as of one position of the log, from silver and the changes in bronze that silver does not have."""
