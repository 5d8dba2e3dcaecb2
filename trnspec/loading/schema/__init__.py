"""JSON Schemas that are generated from the classes, and the errors of documents that violate them."""
