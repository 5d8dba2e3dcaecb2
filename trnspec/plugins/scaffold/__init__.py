"""``trnspec plugin new``: the ``writer`` and its ``templates``, one folder for each kind of plugin."""
