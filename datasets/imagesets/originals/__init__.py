"""Original image sets, in the forms they are distributed in -> their samples, with labels in the data set's own order.

``detect`` finds out which form a folder has; one module reads each form, and ``detect`` itself arrays of pixels.
``treatment`` proves that an image is whole, and shrinks it. ``prepare`` converts the samples.
"""
