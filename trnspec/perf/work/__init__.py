"""What a model computes and stores: ``transformer``, ``flops``, ``layout``, ``stages``, ``plan``, ``memory``."""
