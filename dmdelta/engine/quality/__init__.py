"""`dmdelta quality`: tables evaluated by their suites, and quarantined rows released."""
