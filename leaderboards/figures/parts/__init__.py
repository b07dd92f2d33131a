"""Parts that several kinds of figure share; a kind draws by itself what is its own.

    style               the look: canvas, colours, legends
    runs                the finished runs behind a cell
    logged, recorded    what these have left over the epochs of training, and as maps
    tiles, blocks       a sheet of attention maps
    heads               panels of where heads look

None of them knows a kind of figure, but ``blocks``, which lays out those of maps.
"""
