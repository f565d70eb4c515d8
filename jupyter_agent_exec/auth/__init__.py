"""Authentication, authorization, and the base of all handlers."""
