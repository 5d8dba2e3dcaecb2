"""The language server: findings, hover texts, completion, navigation and edits in an editor.

Nothing outside this package imports pygls or lsprotocol. The modules other than ``server`` are functions of documents
and positions; ``server`` connects them to the protocol.
"""
