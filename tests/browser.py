"""Looks at a page with a real browser: Debian's Chromium, driven by selenium."""

from __future__ import annotations

import importlib.util
import json
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path

WIDTHS = (1280, 390)
_FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    # Containers often have little shared memory; the browser then uses files.
    "--disable-dev-shm-usage",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--hide-scrollbars",
)
# Runs in the page and returns what is wrong with it at the present width.
_LOOK = """
const wrong = [], wide = document.documentElement.clientWidth;
const name = e => (e.closest('section') || document.body).id + ' ' + e.tagName.toLowerCase();
if (document.documentElement.scrollWidth > wide)
  wrong.push('the page is ' + document.documentElement.scrollWidth + ' pixels wide');
const figures = document.querySelectorAll('figure');
for (const figure of figures) {
  const drawing = figure.querySelector('svg, img');
  if (!drawing) { wrong.push(name(figure) + ' holds no drawing'); continue; }
  const box = drawing.getBoundingClientRect();
  if (box.width < 50 || box.height < 50)
    wrong.push(name(figure) + ' is ' + box.width + ' x ' + box.height + ' pixels large');
  if (box.left < 0 || box.right > wide + 0.5)
    wrong.push(name(figure) + ' goes from ' + box.left + ' to ' + box.right);
  if (!drawing.checkVisibility({opacityProperty: true, visibilityProperty: true}))
    wrong.push(name(figure) + ' is hidden');
  if (!drawing.getAttribute('aria-label') && !drawing.getAttribute('alt'))
    wrong.push(name(figure) + ' has no description');
  const box_units = drawing.viewBox && drawing.viewBox.baseVal;
  if (box_units && box_units.width && box.width / box_units.width < 0.75)
    wrong.push(name(figure) + ' is drawn at ' + (box.width / box_units.width).toFixed(2));
}
for (const table of document.querySelectorAll('table')) {
  const box = (table.closest('.wide') || table).getBoundingClientRect();
  if (box.left < 0 || box.right > wide + 0.5 || !box.width || !box.height)
    wrong.push(name(table) + ' goes from ' + box.left + ' to ' + box.right);
}
const ids = new Set();
for (const element of document.querySelectorAll('[id]')) {
  if (ids.has(element.id)) wrong.push('two elements are called ' + element.id);
  ids.add(element.id);
}
for (const link of document.querySelectorAll('a[href^="#"], use[href^="#"]'))
  if (!ids.has(link.getAttribute('href').slice(1)))
    wrong.push(name(link) + ' leads to no ' + link.getAttribute('href'));
return {wrong: wrong, figures: figures.length};
"""


def missing() -> str | None:
    """Why no page can be looked at here, or None."""
    if importlib.util.find_spec("selenium") is None:
        return "selenium is not installed: pip install -e '.[test]'"
    for program in ("chromium", "chromedriver"):
        if shutil.which(program) is None:
            return f"there is no {program} here: apt-get install chromium chromium-driver"
    return None


@contextmanager
def open_browser(dark: bool = False) -> Iterator:
    """A headless browser with an empty profile; nothing is downloaded for it."""
    from selenium import webdriver

    # Both paths are given, so that selenium has no reason to look for a browser elsewhere.
    os.environ |= {"SE_OFFLINE": "true", "SE_AVOID_STATS": "true"}
    options = webdriver.ChromeOptions()
    options.binary_location = shutil.which("chromium")
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile:
        for flag in (*_FLAGS, f"--user-data-dir={profile}"):
            options.add_argument(flag)
        service = webdriver.ChromeService(executable_path=shutil.which("chromedriver"))
        driver = webdriver.Chrome(options=options, service=service)
        driver.set_page_load_timeout(600)
        try:
            if dark:
                scheme = [{"name": "prefers-color-scheme", "value": "dark"}]
                driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": scheme})
            yield driver
        finally:
            driver.quit()


def check_page(path: str | os.PathLike[str], widths=WIDTHS, driver=None) -> list[str]:
    """What is wrong with a page: messages of the console, requests, figures that do not fit.

    An empty list is a sound page. ``driver`` is a browser that is open already.
    """
    address = Path(path).resolve().as_uri()
    problems: list[str] = []
    with nullcontext(driver) if driver is not None else open_browser() as browser:
        for width in widths:
            load(browser, address, width)
            problems += [f"at {width} pixels: {text}" for text in look(browser, address)]
    return problems


def look(browser, address: str) -> list[str]:
    """What is wrong with the page that is open, at its present width.

    It may ask for what lies below ``address``, and for nothing else.
    """
    found = browser.execute_script(_LOOK)
    texts = [*found["wrong"], *_console(browser), *_requests(browser, address)]
    return texts if found["figures"] else [*texts, "the page has no figure"]


def load(browser, address: str, width: int) -> None:
    """Open a page at a width; smaller windows than 500 pixels have to be emulated."""
    browser.get("about:blank")
    for kind in ("browser", "performance"):
        browser.get_log(kind)
    size = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": width < 600}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    browser.get(address)


def _console(browser) -> list[str]:
    return [
        f"console, {entry['level']}: {entry['message']}"
        for entry in browser.get_log("browser")
        if entry["level"] in ("SEVERE", "WARNING")
    ]


def _requests(browser, address: str) -> list[str]:
    wanted = []
    for entry in browser.get_log("performance"):
        message = json.loads(entry["message"])["message"]
        if message["method"] == "Network.requestWillBeSent":
            url = message["params"]["request"]["url"]
            own = url.startswith(address) if address.endswith("/") else url.split("#")[0] == address
            if not own and not url.startswith(("data:", "about:")):
                wanted.append(f"asks for {url}")
    return wanted


def capture(target, width: int, driver) -> None:
    """Write a PNG of the page that is open."""
    import base64

    high = driver.execute_script("return document.documentElement.scrollHeight")
    clip = {"x": 0, "y": 0, "width": width, "height": high, "scale": 1}
    asked = {"captureBeyondViewport": True, "clip": clip}
    found = driver.execute_cdp_cmd("Page.captureScreenshot", asked)
    Path(target).write_bytes(base64.b64decode(found["data"]))


if __name__ == "__main__":
    import sys

    found = [problem for page in sys.argv[1:] for problem in check_page(page)]
    print("\n".join(found) or "nothing is wrong")
    sys.exit(bool(found))
