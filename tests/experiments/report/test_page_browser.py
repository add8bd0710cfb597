"""Pages as a real browser shows them: on a desk and on a telephone."""

from __future__ import annotations

import pytest

import browser
import page_example


def test_what_is_missing_is_named(monkeypatch):
    monkeypatch.setattr(browser.importlib.util, "find_spec", lambda name: None)
    assert "selenium is not installed" in browser.missing()
    monkeypatch.setattr(browser.importlib.util, "find_spec", lambda name: object())
    monkeypatch.setattr(browser.shutil, "which", lambda program: None)
    assert "no chromium here: apt-get install" in browser.missing()


@pytest.fixture(scope="module")
def chromium():
    if browser.missing() is not None:
        pytest.skip(browser.missing())
    with browser.open_browser() as driver:
        yield driver


@pytest.fixture(scope="module")
def html():
    return page_example.example_html()


def test_nothing_is_wrong_with_a_page(chromium, html, tmp_path):
    path = tmp_path / "page.html"
    path.write_text(html, encoding="utf-8")
    assert browser.check_page(path, driver=chromium) == []


# Every check, on a page that it has to find fault with.
FAULTS = {
    "policy": (
        "</main>",
        '<img alt="a" src="https://example.invalid/a.png"></main>',
        "Content Security Policy",
    ),
    "script": ("</main>", "<script>console.error('oh')</script></main>", "console, SEVERE"),
    "wide": ("figure svg {", "figure svg { min-width: 600px;", "figure goes from"),
    "page": ("</main>", '<div style="width: 2000px">a</div></main>', "pixels wide"),
    "hidden": ("figure svg {", "figure svg { visibility: hidden;", "is hidden"),
    "gone": ("figure { ", "figure { display: none; ", "is 0 x 0 pixels large"),
    "tiny": ("figure { ", "figure { width: 200px; ", "is drawn at 0."),
    "twice": ("</main>", '<p id="contents">a</p></main>', "two elements are called contents"),
    "astray": ("</main>", '<a href="#nowhere">a</a></main>', "leads to no #nowhere"),
    "table": ("max-width: 100%; }", "width: 3000px; }", "table goes from"),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_faulty_page_is_noticed(chromium, html, tmp_path, fault):
    before, after, message = FAULTS[fault]
    assert before in html
    path = tmp_path / "page.html"
    path.write_text(html.replace(before, after, 1), encoding="utf-8")
    found = browser.check_page(path, widths=(390,), driver=chromium)
    assert any(message in problem for problem in found), found


def test_a_request_is_noticed(chromium, html, tmp_path):
    (tmp_path / "a.css").write_text("p { color: red }", encoding="utf-8")
    text = html.replace("default-src 'none'; style-src 'unsafe-inline';", "")
    text = text.replace("</head>", '<link rel="stylesheet" href="a.css"></head>')
    path = tmp_path / "page.html"
    path.write_text(text, encoding="utf-8")
    found = browser.check_page(path, widths=(1280,), driver=chromium)
    assert any("asks for file:" in problem and "a.css" in problem for problem in found), found


def test_a_page_without_figures_is_noticed(chromium, tmp_path):
    path = tmp_path / "page.html"
    path.write_text("<!DOCTYPE html><title>a</title><p>a</p>", encoding="utf-8")
    assert browser.check_page(path, (390,), chromium) == ["at 390 pixels: the page has no figure"]
