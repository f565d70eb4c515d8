"""Trials: code that runs in a forked, sealed copy of a kernel, and changes nothing."""
