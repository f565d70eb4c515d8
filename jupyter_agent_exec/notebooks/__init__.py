"""Reads and changes users' notebooks without losing their unsaved edits."""
