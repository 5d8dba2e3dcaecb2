"""The parts of a drawing of a topology, as SVG.

============  ========================================================
``canvas``    Shapes, colours, the key, and the frame.
``grid``      Meshes and tori in two to four dimensions.
``line``      Rows and circles of chips.
``switched``  Levels of switches.
============  ========================================================
"""
