"""Moving pictures: a camera on an environment, the canvas that explains what it sees, the file."""
