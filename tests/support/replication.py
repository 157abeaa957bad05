"""A replica with the GTID history of its primary, and the failover to it."""

from tests.support.relaying import wait_until
from tests.support.servers import Server


def follow(replica: Server, primary: Server) -> None:
    """Replicate all of the primary's log, from its beginning; the replica needs `log_slave_updates`."""
    primary.execute(
        "SET SESSION sql_log_bin = 0", "CREATE USER 'r'@'%' IDENTIFIED BY 'r'", "GRANT ALL ON *.* TO 'r'@'%'"
    )
    how = "MASTER_AUTO_POSITION = 1"
    if replica.flavor == "mariadb":
        how = "MASTER_USE_GTID = slave_pos"
    elif not replica.version.startswith("5."):
        how += ", GET_MASTER_PUBLIC_KEY = 1"
    replica.execute(
        f"CHANGE MASTER TO MASTER_HOST='127.0.0.1', MASTER_PORT={primary.port}, MASTER_USER='r', MASTER_PASSWORD='r', {how}",
        "START SLAVE",
    )


def promote(replica: Server, primary: Server) -> None:
    """Wait until the replica has caught up with the primary, then stop replication."""
    expected = primary.position()[2]
    wait_until(lambda: replica.position()[2] == expected)
    replica.execute("STOP SLAVE")
