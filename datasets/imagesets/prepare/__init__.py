"""``python datasets/prepare.py``: an image set as distributed -> a prepared folder, which the loader opens.

    originals -> treated images, in worker processes -> a format's sink -> index -> manifest

``conversion`` ties them together; ``work`` drives the workers, and notes what is done for a conversion that is killed.
"""
