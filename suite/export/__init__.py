"""The data's path beyond the suite: a finished run -> files that other tools read.

    timm_layout   a network -> timm's name, arguments and weights for it, where timm has the very same network
    folder        run -> timm's model folder: config.json, model.safetensors, README.md; and the network from it
    card          result -> the model card, which is the folder's README.md
    timm_results  results -> one CSV file with the columns of timm's own tables

``python -m suite.export`` is the command.
"""
