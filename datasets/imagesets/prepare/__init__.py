"""``python datasets/prepare.py``: an image set as distributed -> a prepared folder, which the readers open.

    originals (folders, ilsvrc, shards, arrays) -> images, in worker processes -> sinks -> index -> manifest

``conversion`` ties them together; ``portions`` remembers what is done, so that a killed conversion goes on.
"""
