"""Studies: many runs as data, and the engines that carry them out."""
