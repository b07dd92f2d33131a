"""A data set of one's own: draws discs and squares into DIR/train/CLASS/ and DIR/test/CLASS/, as photographs would lie.

python my_images.py shapes
convolutional-prior prepare --dataset shapes --source shapes --format memory --max-side 32 --out data
convolutional-prior grid --suite sample_efficiency --dataset shapes --data-dir data
"""

import random
import sys
from pathlib import Path

from PIL import Image, ImageDraw


def draw(shape: str, dice: random.Random) -> Image.Image:
    """One image: the shape anywhere, in any color, on any other."""
    image = Image.new("RGB", (48, 48), tuple(dice.randrange(256) for _ in range(3)))
    left, top, side = dice.randrange(24), dice.randrange(24), dice.randrange(12, 24)
    pencil = ImageDraw.Draw(image)
    stroke = pencil.ellipse if shape == "disc" else pencil.rectangle
    stroke((left, top, left + side, top + side), fill=tuple(dice.randrange(256) for _ in range(3)))
    return image


def main(folder: Path) -> None:
    dice = random.Random(0)
    for split, count in (("train", 320), ("test", 40)):
        for shape in ("disc", "square"):
            place = folder / split / shape
            place.mkdir(parents=True, exist_ok=True)
            for number in range(count):
                image, path = draw(shape, dice), place / f"{number:03}.png"
                if not path.exists():  # saved anew it would be another file to ``prepare``
                    image.save(path)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
