"""Learners: what turns rewards into a better policy."""
