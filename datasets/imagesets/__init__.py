"""Image sets: where their arrays come from (``fetch``), and how training reads them."""

import os

os.environ["WDS_SECURE"] = "1"  # read when webdataset is imported: no pickles, no torch.load, no pipe: commands
