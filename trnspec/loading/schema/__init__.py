"""JSON Schema: written from the classes, and asked for better sentences when a document is not sound."""
