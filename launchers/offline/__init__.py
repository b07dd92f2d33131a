"""The project on a machine without a network: packed here into parts, put together and installed there.

    python -m launchers.offline pack       here: wheels and images -> offline-kit/manifest.json, part-01, part-02, …
    python -m launchers.offline check      there: which parts are still to be brought
    python3 -m launchers.offline install   there: parts -> .venv on top of the PyTorch that is there, and the images

It is a launcher's matter, since it decides where a run can take place. What runs there before anything is installed,
``parts`` and ``install``, needs no more than Python itself.
"""
