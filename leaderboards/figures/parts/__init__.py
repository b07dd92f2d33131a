"""Parts that several kinds of figure share.

style               the look: canvas, colours, legends
runs                the finished runs behind a cell
logged, recorded    what these have logged over the epochs, and recorded as maps
tiles, blocks       a sheet of attention maps
heads               panels of where heads look
"""
