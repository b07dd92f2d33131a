"""``python -m leaderboards.schemas``: write the schemas, after a form has changed and its version with it."""

import json

from leaderboards.schemas import FOLDER, published

if __name__ == "__main__":
    for name, schema in published().items():
        (FOLDER / name).write_text(json.dumps(schema, indent=1) + "\n", encoding="utf-8")
