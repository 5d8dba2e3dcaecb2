"""Measurements on an accelerator of one's own with PyTorch, which is imported only when something is measured."""
