"""`dmdelta verify`: bronze compared with the source's log, which an independent decoder reads."""
