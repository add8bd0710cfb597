"""An SVG file made part of a page: no name meets another's, nothing is fetched, nothing runs."""

from __future__ import annotations

import re
from xml.etree import ElementTree

from priorshift.errors import InputError

_SVG = "http://www.w3.org/2000/svg"
_XLINK = "http://www.w3.org/1999/xlink"
_HREFS = ("href", f"{{{_XLINK}}}href")
_REFERENCE = re.compile(r"url\(\s*['\"]?#([^)'\"]+)['\"]?\s*\)")
_FORBIDDEN = {"script", "foreignObject", "iframe", "a"}
# What matplotlib writes for all elements of a file; in a page it would be for all of the page.
_FOR_ALL = re.compile(r"\s*\*\s*\{([^{}]*)\}\s*")


def inline_svg(svg: str, prefix: str, alt: str) -> str:
    """Return an SVG for the middle of an HTML page.

    Every id gets ``prefix`` in front (matplotlib's names for letters are the same in all figures),
    width and height go (the page decides), and ``alt`` becomes its description.

    Examples
    --------
    >>> svg = '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 2 1"><path id="a"/></svg>'
    >>> inline_svg(svg, "f1", "a path")
    '<svg viewBox="0 0 2 1" role="img" aria-label="a path"><path id="f1-a" /></svg>'
    """
    root = _parsed(svg)
    for parent in list(root.iter()):
        for child in list(parent):
            _move_style(root, parent, child)
            if _local(child) == "metadata":
                parent.remove(child)
    for element in root.iter():
        _check(element)
        _rename(element, prefix)
        element.tag = _local(element)
    for name in ("width", "height", "version"):
        root.attrib.pop(name, None)
    root.attrib |= {"role": "img", "aria-label": alt}
    text = ElementTree.tostring(root, encoding="unicode")
    return re.sub(r">\s+<", "><", text)


def _parsed(svg: str) -> ElementTree.Element:
    # matplotlib's DOCTYPE has no entities; one that has some is not matplotlib's.
    if "<!ENTITY" in svg:
        raise InputError("the SVG defines entities; give one that save_drawing wrote")
    try:
        root = ElementTree.fromstring(svg.encode("utf-8"))
    except ElementTree.ParseError as error:
        raise InputError(f"the figure is not SVG: {error}") from None
    if root.tag != f"{{{_SVG}}}svg":
        raise InputError(f"the figure is not SVG: its root is {root.tag!r}")
    if "viewBox" not in root.attrib:
        raise InputError("the SVG has no viewBox, so that it cannot be scaled; add one")
    return root


def _local(element: ElementTree.Element) -> str:
    return str(element.tag).rpartition("}")[2]


def _move_style(
    root: ElementTree.Element, parent: ElementTree.Element, child: ElementTree.Element
) -> None:
    """What a style sheet says of all elements is said once, of the figure, and inherited."""
    if _local(child) != "style":
        return
    rule = _FOR_ALL.fullmatch(child.text or "")
    if rule is None:
        raise InputError("the SVG has a style sheet, which would hold for the whole page too")
    root.set("style", f"{root.get('style', '')}{rule.group(1).strip()}")
    parent.remove(child)


def _check(element: ElementTree.Element) -> None:
    name = _local(element)
    if name in _FORBIDDEN:
        raise InputError(f"the SVG holds a <{name}>, which has no place in a figure")
    for key, value in element.attrib.items():
        if key.lower().startswith("on"):
            raise InputError(f"the SVG holds a script: the attribute {key}")
        address = key in _HREFS and not value.startswith(("#", "data:image/png;"))
        if address or re.search(r"url\(\s*['\"]?(?!['\"]?#)", value):
            raise InputError(f"the SVG refers to something outside of it: {key}={value[:60]!r}")


def _rename(element: ElementTree.Element, prefix: str) -> None:
    for key, value in list(element.attrib.items()):
        if key == "id":
            element.set(key, f"{prefix}-{value}")
        elif key in _HREFS:
            del element.attrib[key]
            renamed = f"#{prefix}-{value[1:]}" if value.startswith("#") else value
            element.set("href", renamed)
        elif "url(" in value:
            element.set(key, _REFERENCE.sub(rf"url(#{prefix}-\1)", value))
