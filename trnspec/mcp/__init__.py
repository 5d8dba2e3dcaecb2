"""The catalog and the evaluators for agents, over the Model Context Protocol.

=============  =======================================================
``arguments``  The inputs of evaluators as schemas; command lines of calls.
``commands``   Runs a command in a process of its own and reads its JSON.
``server``     The tools, and the server on standard input and output.
=============  =======================================================
"""
