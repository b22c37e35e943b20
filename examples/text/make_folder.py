"""Write texts to try `texts.py` with: SciPy's own documentation, a folder for each of its parts.

Run `python make_folder.py FOLDER`.
"""

import importlib
import inspect
import sys
from pathlib import Path

PARTS = ["fft", "integrate", "interpolate", "linalg", "ndimage", "optimize", "signal", "sparse"]
SHORTEST = 300
"""Characters: shorter texts are but a signature."""


def main(folder: str) -> None:
    """Write one file a function."""
    written = 0
    for part in [*PARTS, "spatial", "stats"]:
        module = importlib.import_module(f"scipy.{part}")
        (Path(folder) / part).mkdir(parents=True, exist_ok=True)
        for name in module.__all__:
            text = inspect.getdoc(getattr(module, name)) or ""
            if callable(getattr(module, name)) and len(text) > SHORTEST:
                (Path(folder) / part / f"{name}.txt").write_text(text, encoding="utf-8")
                written += 1
    print(f"{folder}: {written} texts")


if __name__ == "__main__":
    main(*sys.argv[1:])
