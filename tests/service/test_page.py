"""The page in a real browser."""

from __future__ import annotations

import json
import os
import re
import time
from pathlib import Path

import numpy as np
import pytest

import browser
import serving
from priorshift import LabelShiftClassifier

AXE = os.environ.get("PRIORSHIFT_AXE", "")
SERIOUS = ("serious", "critical")
pytestmark = pytest.mark.skipif(browser.missing() is not None, reason=str(browser.missing()))


@pytest.fixture(scope="module")
def client(served, tmp_path_factory):
    with serving.client(served.path, tmp_path_factory.mktemp("state")) as found:
        yield found


@pytest.fixture
def shop(client):
    """The client, once the stream ``shop`` has learned, whichever test came first."""
    sent = serving.body("first", serving.batches(1)[0])
    assert client.post("/v1/streams/shop/batches", json=sent).status_code == 200
    return client


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
    wait_for(driver, "document.getElementById('new').open")
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


@pytest.fixture(scope="module")
def many(tmp_path_factory):
    """A client of 120 streams: one with an alarm, one of a single batch of 16 classes."""
    folder = tmp_path_factory.mktemp("many")
    well, ill = serving.save_watched(folder / "points.priorshift")
    sharp = np.kron(np.eye(16), np.ones((20, 1))) * 0.84 + 0.01
    letters = np.repeat(np.arange(16), 20)
    letters[::20] = np.arange(16)[::-1]  # the model errs now and then
    wide = LabelShiftClassifier.from_probabilities(sharp, letters)
    wide.save(folder / "wide.priorshift")
    sources = [str(folder / "points.priorshift"), str(folder / "wide.priorshift")]
    with serving.client(sources, folder / "state") as found:
        for number in range(118):
            found.put(f"/v1/streams/quiet-{number:03d}")
        for number in range(60):
            rows = (well if number < 30 else ill)(50)
            sent = {"batch_id": f"b{number}", "rows": rows.tolist()}
            assert found.post("/v1/streams/broken/batches", json=sent).status_code == 200
        found.put("/v1/streams/alphabet", json={"model": "wide"})
        found.post("/v1/streams/alphabet/batches", json=serving.body("b", sharp))
        yield found


NAMES = "[...document.querySelectorAll('#streams li')].map(item => item.dataset.name)"


def said(driver, name: str) -> str:
    return driver.execute_script(f"return {text(name)}")


def test_streams_with_an_alarm_come_first(many, driver):
    address = f"{many.base_url}/"
    for width in (1280, 768, 390):
        browser.load(driver, address, width)
        wait_for(driver, "document.querySelectorAll('#accuracy-chart svg').length === 1")
        names = driver.execute_script(f"return {NAMES}")
        assert names[:3] == ["broken", "alphabet", "quiet-117"]
        assert len(names) == 50
        assert said(driver, "stream-title") == "broken"
        assert said(driver, "streams-said") == "50 of 120 streams; 1 alarm of the guard"
        first, second = driver.find_elements("css selector", "#streams button")[:2]
        assert "alarm" in first.text
        assert "alarm" not in second.text
        # What is open is in sight without scrolling, its alarm with it.
        for place in ("#stream-title", "#facts .bad"):
            top = f"document.querySelector('{place}').getBoundingClientRect().top"
            assert driver.execute_script(f"return {top}") < 560, (width, place)
        assert browser.look(driver, address) == []


def test_streams_are_found_by_keyboard(many, driver):
    browser.load(driver, f"{many.base_url}/", 390)
    wait_for(driver, f"{NAMES}.length === 50")
    more = driver.find_element("id", "more")
    for count, first in ((100, "quiet-069"), (120, "quiet-019")):
        more.send_keys("\n")
        wait_for(driver, f"{NAMES}.length === {count}")
        wait_for(driver, f"document.activeElement.closest('li')?.dataset.name === '{first}'")
    assert not more.is_displayed()
    assert said(driver, "streams-said").startswith("120 of 120 streams")
    field = driver.find_element("id", "find")
    field.send_keys("UIET-01")
    wait_for(driver, f"{NAMES}.length === 10")
    assert said(driver, "streams-said").startswith("10 of 10 found among 120 streams")
    field.send_keys("7\n")
    wait_for(driver, f"{NAMES}.length === 1")
    field.send_keys("\n")
    wait_for(driver, f"{text('stream-title')} === 'quiet-017'")
    wait_for(driver, "document.activeElement.id === 'stream-title'")


def test_a_list_does_not_move_under_the_hand(many, driver):
    browser.load(driver, f"{many.base_url}/", 1280)
    wait_for(driver, f"{NAMES}.length === 50")
    before = driver.execute_script(f"return {NAMES}")
    driver.execute_script("document.querySelector('#streams button').focus()")
    rows = {"batch_id": "moves", "rows": [[0.0, 0.0]]}
    many.post("/v1/streams/quiet-116/batches", json=rows)
    age = "document.querySelector('#streams [data-name=quiet-116]')"
    wait_for(driver, f"{age} && true")
    time.sleep(1.5)  # two looks of the page
    assert driver.execute_script(f"return {NAMES}") == before
    driver.execute_script("document.activeElement.blur()")
    many.post("/v1/streams/quiet-116/batches", json={**rows, "batch_id": "moves on"})
    wait_for(driver, f"{NAMES}[1] === 'quiet-116'")


def test_an_alarm_is_told_in_plain_words(many, driver):
    browser.load(driver, f"{many.base_url}/", 1280)
    wait_for(driver, "document.querySelectorAll('#accuracy-chart svg').length === 1")
    guard = many.get("/v1/streams/broken/guard").json()
    # Read at once: the page may draw its facts anew.
    told, small = driver.execute_script(
        "const told = document.querySelector('#facts .whole');"
        "return [told.innerText, told.querySelector('small').innerText]"
    )
    assert "Predictions are now those of your model as it is" in told
    assert "broken sensor" in told
    assert guard["evidence"] in small
    assert small.endswith("p < 0.001")
    facts = said(driver, "facts")
    assert facts.count("not to be relied on: it assumes label shift") == 2
    assert "points" in facts  # the model
    assert "Last batch" in facts
    assert "ago" in facts or "just now" in facts
    assert "the guard denies that" in said(driver, "accuracy-caption")
    assert f"the guard's alarm from batch {guard['round']} to 60" in said(driver, "prior-caption")
    # The mark stands at the batch of the alarm, on both charts.
    for chart in ("prior-chart", "accuracy-chart"):
        places, width, times = driver.execute_script(
            f"const svg = document.querySelector('#{chart} svg');"
            "return [[...svg.querySelectorAll('.alarm-begin')].map(l => l.x1.baseVal.value),"
            "svg.viewBox.baseVal.width, [...svg.querySelectorAll('.time')].map(t => t.textContent)]"
        )
        (place,) = places  # the first batch is at 44, the last at 10 from the right
        assert (place - 44) / (width - 54) == pytest.approx((guard["round"] - 1) / 59, abs=1e-3)
        assert [":" in time for time in times] == [True, True]
    assert "received" in said(driver, "prior-note")
    strip = driver.execute_script("return document.querySelectorAll('.regime').length")
    assert strip == 60
    assert "regimes, class mixes that come back" in said(driver, "prior-note")


def test_words(many, driver):
    """What the guard may have to say besides, and how sure numbers are."""
    browser.load(driver, f"{many.base_url}/", 390)
    wait_for(driver, f"{NAMES}.length === 50")
    found = driver.execute_async_script(
        """
        const done = arguments[0], now = Date.now() / 1000;
        import('/static/words.js').then(({ago, chance, guardSays}) => {
          const usual = {watching: true, alarm: false, now: false, own_model: 0, share: 0,
            p_value: 0.9,
            kind: 'feature', round: 7, evidence: 'feature 3 above 2'};
          const says = more => {
            const found = guardSays({...usual, ...more});
            return [found.word, found.lines.join(' '), found.small];
          };
          done({
            chances: [1, 0.5, 0.25, 0.001, 0.0009, 0].map(chance),
            times: [-5, 59, 60, 7300, 86400 * 3].map(seconds => ago(now - seconds - 0.5)),
            blind: says({watching: false}),
            quiet: says({}),
            little: says({own_model: 0.25, share: 0.25, p_value: 0.3}),
            doubt: says({own_model: 0.75, share: 0.75, p_value: 0.02}),
            warned: says({alarm: true, now: true, p_value: 1e-9}),
            over: says({alarm: true, p_value: 1e-9}),
          });
        })
        """
    )
    assert found["chances"] == [*["no evidence"] * 2, "p = 0.25", "p = 0.0010", *["p < 0.001"] * 2]
    ages = ["just now", "just now", "1 minute ago", "2 hours ago", "3 days ago"]
    assert found["times"] == ages
    assert found["blind"] == ["not watching", "", ""]
    assert found["quiet"] == ["label shift holds", "", "no evidence against it"]
    word, lines, small = found["doubt"]
    assert (word, small) == ("label shift is in doubt", "p = 0.020")
    assert "your model as it is has 75.0 % of every prediction" in lines
    word, lines, small = found["little"]
    assert (word, small) == ("label shift holds", "p = 0.30")
    assert "25.0 %" in lines
    word, lines, small = found["warned"]
    assert (word, small) == ("alarm", "First seen at batch 7: feature 3 above 2; p < 0.001")
    assert lines.startswith("Predictions are still adapted")
    assert "A column has values that no mix of the classes explains." in lines
    word, lines, small = found["over"]
    assert (word, small) == ("no alarm now", "Seen at batch 7: feature 3 above 2; p < 0.001")
    assert lines.startswith("There was an alarm, and its cause has gone.")


def test_one_batch_of_many_classes_is_points(many, driver):
    browser.load(driver, f"{many.base_url}/", 390)
    wait_for(driver, f"{NAMES}.length === 50")
    driver.execute_script("document.querySelector('[data-name=alphabet] button').click()")
    count = "document.querySelectorAll('#prior-chart .point').length === 16"
    wait_for(driver, f"{text('stream-title')} === 'alphabet' && {count}")
    places = "[...document.querySelectorAll('#prior-chart .point')].map(p => p.getAttribute('cx'))"
    assert len(set(driver.execute_script(f"return {places}"))) == 16
    assert "no evidence" in said(driver, "facts")
    # No two classes look the same.
    looks = (
        "[...document.querySelectorAll('#legend li')].map(item => {"
        "const style = getComputedStyle(item, '::before');"
        "return style.borderTopColor + style.borderTopStyle})"
    )
    assert len(set(driver.execute_script(f"return {looks}"))) == 16
    assert not driver.find_element("id", "many-classes").is_displayed()


@pytest.mark.parametrize("dark", [False, True])
def test_colours_are_told_apart_with_any_eyes(many, dark):
    """As they are, and as eyes without red, green or blue cones see them."""
    with browser.open_browser(dark) as driver:
        browser.load(driver, f"{many.base_url}/", 1280)
        wait_for(driver, f"{NAMES}.length === 50")
        driver.execute_script("document.querySelector('[data-name=alphabet] button').click()")
        wait_for(driver, "document.querySelectorAll('#legend li').length === 16")
        script = (
            "return [getComputedStyle(document.body).backgroundColor, "
            "...[...document.querySelectorAll('#legend li')].slice(0, 8).map(item => "
            "getComputedStyle(item, '::before').borderTopColor)]"
        )
        found = [re.findall(r"\d+", one)[:3] for one in driver.execute_script(script)]
    colours = np.array(found, dtype=float) / 255.0
    linear = np.where(colours <= 0.04045, colours / 12.92, ((colours + 0.055) / 1.055) ** 2.4)
    for name, seen in EYES.items():
        lab = _lab(np.clip(linear @ np.array(seen).T, 0.0, 1.0))
        apart = np.linalg.norm(lab[:, None] - lab[None], axis=2)[np.triu_indices(9, 1)]
        assert apart.min() > 12.0, (name, apart.min())


# Machado, Oliveira and Fernandes (2009), severity 1, on linear sRGB.
EYES = {
    "all cones": np.eye(3),
    "no red": [
        [0.152286, 1.052583, -0.204868],
        [0.114503, 0.786281, 0.099216],
        [-0.003882, -0.048116, 1.051998],
    ],
    "no green": [
        [0.367322, 0.860646, -0.227968],
        [0.280085, 0.672501, 0.047413],
        [-0.011820, 0.042940, 0.968881],
    ],
    "no blue": [
        [1.255528, -0.076749, -0.178779],
        [-0.078411, 0.930809, 0.147602],
        [0.004733, 0.691367, 0.303900],
    ],
}


def _lab(linear: np.ndarray) -> np.ndarray:
    """CIE L*a*b* of linear sRGB, daylight: a distance of 2 is just seen."""
    to_xyz = [
        [0.4124564, 0.3575761, 0.1804375],
        [0.2126729, 0.7151522, 0.0721750],
        [0.0193339, 0.1191920, 0.9503041],
    ]
    xyz = linear @ np.array(to_xyz).T / [0.95047, 1.0, 1.08883]
    x, y, z = np.where(xyz > 216 / 24389, np.cbrt(xyz), (24389 / 27 * xyz + 16) / 116).T
    return np.column_stack([116 * y - 16, 500 * (x - y), 200 * (y - z)])


@pytest.mark.parametrize("width", [1280, 768, 390])
def test_every_width(shop, driver, width):
    address = f"{shop.base_url}/"
    browser.load(driver, address, width)
    wait_for(driver, "document.querySelectorAll('#prior-chart svg .mean').length === 3")
    wait_for(driver, "document.querySelectorAll('#accuracy-chart svg').length === 1")
    time.sleep(0.2)
    assert browser.look(driver, address) == []


def test_a_file_is_dropped(shop, driver, tmp_path):
    rng = np.random.default_rng(5)
    rows = serving.probabilities(rng, rng.integers(0, 3, 250))
    file = tmp_path / "rows.csv"
    lines = ["cat,dog,owl", *(",".join(map(repr, row)) for row in rows.tolist())]
    file.write_text("\n".join(lines) + "\n")
    browser.load(driver, f"{shop.base_url}/", 1280)
    wait_for(driver, f"{text('csv-columns')}.includes('cat, dog, owl')")
    version = shop.get("/v1/streams/shop").json()["version"]
    driver.find_element("id", "csv").send_keys(str(file))
    wait_for(driver, f"{text('csv-said')} === '250 of 250 rows sent'")
    assert shop.get("/v1/streams/shop").json()["version"] == version + 3
    before = shop.get("/v1/streams/shop/history?last=true&limit=1").json()["columns"]["prior"]
    turned = ["p_owl;p_cat;p_dog", *(f"{row[2]!r};{row[0]!r};{row[1]!r}" for row in rows.tolist())]
    file.write_text("\n".join(turned) + "\n")  # other names, another order, another separator
    driver.execute_script("document.getElementById('csv-said').textContent = ''")
    driver.find_element("id", "csv").send_keys(str(file))
    wait_for(driver, f"{text('csv-said')} === '250 of 250 rows sent'")
    assert shop.get("/v1/streams/shop").json()["version"] == version + 6
    after = shop.get("/v1/streams/shop/prior").json()["prior"]
    np.testing.assert_allclose(after, before[-1], atol=0.02)  # the same rows say the same
    file.write_text("0.2,0.3,x\n")
    driver.find_element("id", "csv").send_keys(str(file))
    said = wait_for(driver, f"{text('csv-said')}.startsWith('Refused') && {text('csv-said')}")
    assert 'holds "x"' in said
    file.write_text("0.2,0.3,0.5\n0.2,Infinity,0.1\n")  # which JSON would make nothing of
    driver.find_element("id", "csv").send_keys(str(file))
    wait_for(driver, f"{text('csv-said')}.includes('row 2 holds \"Infinity\"')")
    file.write_text("cat,dog,bird\n0.2,0.3,0.5\n")
    driver.find_element("id", "csv").send_keys(str(file))
    wait_for(
        driver, f"{text('csv-said')}.endsWith('(the first line of the file was taken as names)')"
    )
    file.write_text("0.2,0.3,0.9\n")
    driver.find_element("id", "csv").send_keys(str(file))
    wait_for(driver, "document.querySelector('#errors li code')?.textContent === 'invalid_input'")


def test_a_stream_that_goes_or_is_made_anew(served, driver, tmp_path):
    """What is shown is the stream as it is now; without one nothing can be sent."""
    shop, rows = "/v1/streams/shop", serving.batches(5)

    def points() -> str:
        drawn = "document.querySelector('#prior-chart .mean')?.getAttribute('d')"
        return f"({drawn} || '').split('L').length"

    with serving.client(served.path, tmp_path / "state") as client:
        for number, batch in enumerate(rows):
            client.post(f"{shop}/batches", json=serving.body(f"b{number}", batch))
        early = client.get(f"{shop}/state").content
        client.post(f"{shop}/batches", json=serving.body("last", rows[0]))
        browser.load(driver, f"{client.base_url}/", 1280)
        wait_for(driver, f"{points()} === 6")
        client.put(f"{shop}/state", content=early)
        wait_for(driver, f"{points()} === 5")
        client.delete(shop)
        wait_for(driver, "document.getElementById('stream').hidden")
        for batch in rows[:3]:
            client.post(f"{shop}/batches", json=serving.body(f"new {batch[0, 0]}", batch))
        wait_for(driver, f"!document.getElementById('stream').hidden && {points()} === 3")
        file = tmp_path / "rows.csv"
        file.write_text("cat,dog,owl\n" + "0.2,0.3,0.5\n" * 100 + "0.2,0.3,x\n")
        driver.find_element("id", "csv").send_keys(str(file))
        wait_for(driver, f"{text('csv-said')}.endsWith('; the first 100 rows were learned')")


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
    assert read("2\t0\t1\n0\t0.5\t0.5\n", ["0", "1", "2"])["columns"] == ["2", "0", "1"]
    assert "may be names or numbers" in read("1,0\n0.5,0.5\n", ["0", "1"])
    assert read("p_1,p_0\n0.5,0.5\n", ["0", "1"])["columns"] == ["p_1", "p_0"]
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
def test_axe_finds_no_serious_fault(many, dark):
    """The rules of axe-core, on the page and on the interface, wide and narrow."""
    with browser.open_browser(dark) as driver:
        driver.set_script_timeout(serving.PATIENCE)
        for path in ("", "docs"):
            for width in (1280, 390):
                browser.load(driver, f"{many.base_url}/{path}", width)
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
