"""``trnspec plugin new``: ``templates`` and the ``writer``."""
