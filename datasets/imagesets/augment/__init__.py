"""From a loader's crop to what the model sees: augmentation of training images, from counter-based parameters.

``parameters`` and ``policies`` say what to do (NumPy); ``operations``, ``bicubic`` and ``mixing`` do it
(torch, any device), and ``pipeline`` puts them together. Loaders take their crops from ``parameters``.
"""

from suite.base.torchvision_ops import make_torchvision_importable

make_torchvision_importable()  # before operations imports it for the first time
