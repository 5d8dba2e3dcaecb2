"""Pictures of fabrics as SVG elements."""
