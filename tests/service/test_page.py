"""The page in a real browser."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path

import numpy as np
import pytest

import browser
import serving

AXE = os.environ.get("PRIORSHIFT_AXE", "")
SERIOUS = ("serious", "critical")
pytestmark = pytest.mark.skipif(browser.missing() is not None, reason=str(browser.missing()))


@pytest.fixture(scope="module")
def client(served, tmp_path_factory):
    with serving.client(served.path, tmp_path_factory.mktemp("state")) as found:
        yield found


@pytest.fixture(scope="module")
def driver():
    with browser.open_browser() as found:
        yield found


def wait_for(driver, script: str, seconds: float = serving.PATIENCE):
    """What a script returns as soon as that is true."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        found = driver.execute_script(f"return {script}")
        if found:
            return found
        time.sleep(0.05)
    raise AssertionError(f"never true: {script}")


def text(name: str) -> str:
    return f"document.getElementById('{name}').textContent"


def test_a_stream_is_made_and_seen_to_move(client, driver):
    address = f"{client.base_url}/"
    browser.load(driver, address, 1280)
    wait_for(driver, f"{text('live')} === 'live'")
    driver.find_element("id", "new-name").send_keys("shop\n")  # by keyboard alone
    wait_for(driver, f"{text('stream-title')} === 'shop'")
    wait_for(driver, "document.activeElement.id === 'stream-title'")
    rows = serving.batches(40)
    for number, batch in enumerate(rows[:10]):
        client.post("/v1/streams/shop/batches", json=serving.body(f"b{number}", batch))
    before = wait_for(driver, _settled(10))
    for number, batch in enumerate(rows[10:], 10):
        client.post("/v1/streams/shop/batches", json=serving.body(f"b{number}", batch))
    after = wait_for(driver, _settled(40))
    owls = [float(line[2].split()[1]) for line in (before, after)]
    assert owls[1] > owls[0] + 20
    prior = client.get("/v1/streams/shop/prior").json()["prior"]
    assert owls[1] == pytest.approx(100 * prior[2], abs=0.06)
    facts = driver.execute_script(f"return {text('facts')}")
    assert "Accuracy, adapted" in facts
    assert "Accuracy, unadapted" in facts
    assert "Guard" in facts
    assert browser.look(driver, address) == []
    # Every batch is one point of each line, in their order.
    xs = driver.execute_script(
        "return [...document.querySelectorAll('#prior-chart .mean')].map("
        "line => line.getAttribute('d').slice(1).split('L').map(p => parseFloat(p)))"
    )
    assert [len(line) for line in xs] == [40] * 3
    assert all(line == sorted(line) for line in xs)


def _settled(rounds: int) -> str:
    """The legend's lines, once the page knows of so many batches."""
    return (
        f"document.querySelector('#facts dd')?.textContent === '{rounds}' && "
        "[...document.querySelectorAll('#legend li')].map(item => item.textContent)"
    )


@pytest.mark.parametrize("width", [1280, 768, 390])
def test_every_width(client, driver, width):
    address = f"{client.base_url}/"
    browser.load(driver, address, width)
    wait_for(driver, "document.querySelectorAll('#prior-chart svg .mean').length === 3")
    wait_for(driver, "document.querySelectorAll('#accuracy-chart svg').length === 1")
    time.sleep(0.2)
    assert browser.look(driver, address) == []


def test_a_file_is_dropped(client, driver, tmp_path):
    rng = np.random.default_rng(5)
    rows = serving.probabilities(rng, rng.integers(0, 3, 250))
    file = tmp_path / "rows.csv"
    lines = ["cat,dog,owl", *(",".join(map(repr, row)) for row in rows.tolist())]
    file.write_text("\n".join(lines) + "\n")
    browser.load(driver, f"{client.base_url}/", 1280)
    wait_for(driver, f"{text('csv-columns')}.includes('cat, dog, owl')")
    version = client.get("/v1/streams/shop").json()["version"]
    driver.find_element("id", "csv").send_keys(str(file))
    wait_for(driver, f"{text('csv-said')} === '250 of 250 rows sent'")
    assert client.get("/v1/streams/shop").json()["version"] == version + 3
    before = client.get("/v1/streams/shop/history?last=true&limit=1").json()["columns"]["prior"]
    turned = ["p_owl;p_cat;p_dog", *(f"{row[2]!r};{row[0]!r};{row[1]!r}" for row in rows.tolist())]
    file.write_text("\n".join(turned) + "\n")  # other names, another order, another separator
    driver.execute_script("document.getElementById('csv-said').textContent = ''")
    driver.find_element("id", "csv").send_keys(str(file))
    wait_for(driver, f"{text('csv-said')} === '250 of 250 rows sent'")
    assert client.get("/v1/streams/shop").json()["version"] == version + 6
    after = client.get("/v1/streams/shop/prior").json()["prior"]
    np.testing.assert_allclose(after, before[-1], atol=0.02)  # the same rows say the same
    file.write_text("0.2,0.3,x\n")
    driver.find_element("id", "csv").send_keys(str(file))
    said = wait_for(driver, f"{text('csv-said')}.startsWith('Refused') && {text('csv-said')}")
    assert 'holds "x"' in said
    file.write_text("0.2,0.3,0.9\n")
    driver.find_element("id", "csv").send_keys(str(file))
    wait_for(driver, "document.querySelector('#errors li code')?.textContent === 'invalid_input'")


def test_a_file_is_read_as_its_rules_say(client, driver):
    browser.load(driver, f"{client.base_url}/", 1280)
    ask = (
        "const [text, known, done] = arguments; import('/static/csv.js')"
        ".then(m => m.tableOf(text, known)).then(done, error => done(error.message))"
    )

    def read(text, known=None):
        return driver.execute_async_script(ask, text, known)

    found = read('\ufeffname,"size, m"\r\n"the ""lakes""\nhere",2\r\n\r\nrome,\r\n')
    assert found["columns"] == ["name", "size, m"]
    assert found["rows"] == [['the "lakes"\nhere', "2"], ["rome", ""]]
    assert read("1;2\n3;4") == {"columns": None, "rows": [["1", "2"], ["3", "4"]]}
    assert read("1\t0\n0.5\t0.5\n", ["0", "1"])["columns"] == ["1", "0"]  # names of classes
    assert read("1,0\n0.5,0.5\n", ["0", "2"])["columns"] is None
    assert "never closed" in read('a,b\n"1,2\n')
    assert "row 2 after the names has 1 columns" in read("a,b\n1,2\n3\n")
    assert "no rows" in read("a,b\n")
    assert "no rows" in read("")


def test_names_are_text_never_markup(client, driver):
    """A batch id with markup in it is refused, and shows up in the list of errors as text."""
    word = "<img src=x onerror=alert(1)>"
    rows = serving.batches(2)
    for batch in rows:
        client.post("/v1/streams/shop/batches", json=serving.body(word, batch))
    browser.load(driver, f"{client.base_url}/", 1280)
    wait_for(driver, f"{text('errors')}.includes('<img src=x')")
    assert driver.execute_script("return document.querySelectorAll('img').length") == 0


@pytest.mark.skipif(not os.path.isfile(AXE), reason="PRIORSHIFT_AXE does not name axe.min.js")
@pytest.mark.parametrize("dark", [False, True])
def test_axe_finds_no_serious_fault(client, dark):
    """The rules of axe-core, on the page and on the interface, wide and narrow."""
    with browser.open_browser(dark) as driver:
        driver.set_script_timeout(serving.PATIENCE)
        for path in ("", "docs"):
            for width in (1280, 390):
                browser.load(driver, f"{client.base_url}/{path}", width)
                ready = "#prior-chart svg .mean" if path == "" else "tbody tr"
                wait_for(driver, f"document.querySelectorAll('{ready}').length")
                driver.execute_script(Path(AXE).read_text(encoding="utf-8"))
                found = driver.execute_async_script("axe.run().then(arguments[0])")
                faults = [one for one in found["violations"] if one["impact"] in SERIOUS]
                assert faults == [], (path, width)


def test_the_policy_allows_no_inline_code(client):
    for path in ("/", "/docs", "/static/page.js"):
        found = client.get(path)
        policy = found.headers["content-security-policy"]
        assert "default-src 'none'" in policy
        assert "unsafe" not in policy
        assert "http:" not in policy
    page = client.get("/").text
    assert "style=" not in page
    assert "onclick" not in page
    assert client.get("/static/..%2Fapp.py").status_code == 404
    assert client.get("/static/app.py").status_code == 404


def test_the_interface_is_shown(client, driver):
    browser.load(driver, f"{client.base_url}/docs", 390)
    wait_for(driver, "document.querySelectorAll('tbody tr').length > 20")
    problems = [
        line for line in browser.look(driver, f"{client.base_url}/") if "figure" not in line
    ]
    assert problems == []
    document = client.get("/openapi.json").json()
    assert document["openapi"] == "3.1.0"
    assert json.dumps(document)


def test_with_keys_the_page_asks_for_one(served, tmp_path, driver):
    from priorshift.service.keys import new_key

    with serving.client(served.path, tmp_path) as client:
        connection = client.service.store.connect()
        key = new_key(connection, "on-call", "read")
        connection.close()
        client.service.keys._at = 0.0
        browser.load(driver, f"{client.base_url}/", 390)
        wait_for(driver, "!document.getElementById('key-form').hidden")
        driver.find_element("id", "key").send_keys(key + "\n")
        wait_for(driver, f"{text('live')} === 'live'")
        driver.execute_script("sessionStorage.clear()")
