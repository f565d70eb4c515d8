"""The record: journals, the ledger, blobs, the index over them, and their export."""
