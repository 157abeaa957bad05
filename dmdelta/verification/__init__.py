"""A second opinion on bronze: the log read by mysql-replication, and its row events compared with bronze's rows.

Independent of dmdelta's own decoder: nothing here imports `dmdelta.binlog`, and events are cut by code of this package.
What mysql-replication does not read faithfully is never compared: it is counted with the reason.
"""
