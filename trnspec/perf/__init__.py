"""The performance engine: pure functions of numbers and arrays, and the one place that lowers the graph to them."""
