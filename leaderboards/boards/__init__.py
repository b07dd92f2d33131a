"""From finished runs to the cells of a board."""
