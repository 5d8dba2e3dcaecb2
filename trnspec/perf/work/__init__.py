"""Work and memory of a model on each rank: dimensions per layer, FLOP, layouts, stages, memory."""
