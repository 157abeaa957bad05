"""Independent verification of bronze: compares its rows with the row events that mysql-replication reads from the log.

Independent of dmdelta's own decoder: nothing here imports `dmdelta.binlog`, and this package frames events itself.
Values that mysql-replication does not read correctly are not compared, but counted with the reason.
"""
