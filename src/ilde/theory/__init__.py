"""ILDE-NPG, the algorithm the paper's theorem is about, on decision processes where everything can be computed."""
