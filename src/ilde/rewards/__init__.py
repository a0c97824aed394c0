"""Reward terms and the expressions that combine them."""
