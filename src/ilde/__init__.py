"""Imitation Learning with Double Exploration: beat a demonstrator from a fragment of its demonstration."""
