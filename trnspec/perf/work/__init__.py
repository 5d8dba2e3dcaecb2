"""What a model computes and stores on each rank: dimensions per layer, FLOP, layouts, stages, memory."""
