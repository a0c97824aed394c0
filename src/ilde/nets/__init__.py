"""Networks: layers, distributions, policies, features and running statistics."""
