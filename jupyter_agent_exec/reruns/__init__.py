"""Run what a session or a notebook holds again, and compare the outputs with those from before."""
