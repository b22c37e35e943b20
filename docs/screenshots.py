"""Makes the picture of the demo's report: `python -m docs.screenshots`, from the root of a clone.

It runs `dhsk demo` in a temporary folder, or takes the page that is given, and needs Chromium.
"""

import subprocess
import sys
import tempfile
from pathlib import Path

from tests.browser import Browser

WIDTH, HEIGHT = 1100, 1012
"""Part of the page that is shown, in CSS pixels."""

PICTURE = Path(__file__).parent / "report.png"


def main() -> None:
    """Write docs/report.png."""
    with tempfile.TemporaryDirectory() as folder:
        if len(sys.argv) > 1:
            page = Path(sys.argv[1])
        else:
            subprocess.run([sys.executable, "-m", "dhsk", "demo"], cwd=folder, check=True)
            page = Path(folder) / "dhsk-demo" / "report.html"
        with Browser() as browser:
            browser.screenshot(page, PICTURE, WIDTH, height=HEIGHT)


if __name__ == "__main__":
    main()
