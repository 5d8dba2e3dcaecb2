"""What follows from the dimensions of a transformer alone: its matrices, its parameters, what contradicts itself."""
