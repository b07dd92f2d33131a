"""Image sets: from where they are kept to the batches that training sees.

fetch, originals -> prepare -> formats -> stored_split -> loader, with augment
"""

import os

os.environ["WDS_SECURE"] = "1"  # read when webdataset is imported: no pickles, no torch.load, no pipe: commands
