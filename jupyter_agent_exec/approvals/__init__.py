"""Users' decisions about agents' code, before and after it runs."""
