"""Pictures of the service's page at three widths, as docs/service.md shows them.

Run: python tests/service_pictures.py docs
"""

from __future__ import annotations

import io
import sys
import tempfile
import time
from pathlib import Path

from PIL import Image

import browser
import serving

WIDTHS = ((1280, False), (768, False), (390, True))


def main(folder: Path) -> None:
    """Write service-page.png: the three side by side, small."""
    shots = []
    with tempfile.TemporaryDirectory() as name:
        here = Path(name)
        serving.save_source(here / "animals.priorshift")
        with serving.client(here / "animals.priorshift", here / "state") as client:
            for number, rows in enumerate(serving.batches(80)):
                body = serving.body(f"b{number}", rows)
                client.post("/v1/streams/shop/batches", json=body)
            for other in ("north", "south"):
                client.put(f"/v1/streams/{other}")
            for width, dark in WIDTHS:
                shots.append(_shot(str(client.base_url), width, dark, here / "shot.png"))
    high = max(shot.height for shot in shots)
    whole = Image.new("RGB", (sum(shot.width for shot in shots) + 40, high), "#888888")
    left = 0
    for shot in shots:
        whole.paste(shot, (left, 0))
        left += shot.width + 20
    small = whole.resize((whole.width // 2, whole.height // 2), Image.Resampling.LANCZOS)
    # Thin lines keep their colours only with all that a palette may have.
    few = small.quantize(256, Image.Quantize.MAXCOVERAGE)
    few.save(folder / "service-page.png", optimize=True)


def _shot(url: str, width: int, dark: bool, path: Path) -> Image.Image:
    with browser.open_browser(dark) as driver:
        browser.load(driver, f"{url}/", width)
        choose = (
            "const b = [...document.querySelectorAll('#streams button')].find(b => "
            "b.textContent.includes('shop')); if (b) b.click(); return Boolean(b)"
        )
        drawn = "return document.querySelector('#facts dd')?.textContent === '80'"
        for script in (choose, drawn):
            while not driver.execute_script(script):
                time.sleep(0.1)
        time.sleep(1.0)
        driver.execute_script("document.activeElement.blur()")
        browser.capture(path, width, driver)
        return Image.open(io.BytesIO(path.read_bytes())).convert("RGB")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
