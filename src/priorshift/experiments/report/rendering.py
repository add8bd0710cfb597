"""Texts from templates: HTML with every text escaped, LaTeX and Markdown with filters for it."""

from __future__ import annotations

import re
from functools import cache
from typing import TYPE_CHECKING, Any

from priorshift.experiments.report.grid import signed
from priorshift.experiments.report.output import need

if TYPE_CHECKING:
    from jinja2 import Environment

# A bracket or a star behind the end of a row would be read as its argument; < > | are other signs
# in LaTeX's oldest fonts.
_LATEX = str.maketrans(
    {
        **{sign: f"\\{sign}" for sign in "&%$#_{}"},
        **{sign: f"{{{sign}}}" for sign in "[]*"},
        **{sign: f"${sign}$" for sign in "<>|"},
        "\\": r"\textbackslash{}",
        "~": r"\textasciitilde{}",
        "^": r"\textasciicircum{}",
        "±": r"$\pm$",
        "•": r"$\bullet$",
        "≈": r"$\approx$",
    }
)
# LaTeX is full of braces: its templates have other brackets.
_LATEX_SYNTAX: dict[str, Any] = {
    **{"block_start_string": "<%", "block_end_string": "%>"},
    **{"variable_start_string": "<<", "variable_end_string": ">>"},
    **{"comment_start_string": "<#", "comment_end_string": "#>"},
}


def render(template: str, **values: Any) -> str:
    """Return a template of this package, filled in."""
    need("jinja2")
    return _environment(template.endswith(".tex.j2")).get_template(template).render(values).strip()


@cache
def _environment(latex: bool) -> Environment:
    from jinja2 import Environment, PackageLoader, StrictUndefined

    found = Environment(
        loader=PackageLoader(__package__),
        autoescape=lambda name: name is not None and name.endswith(".html.j2"),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        **(_LATEX_SYNTAX if latex else {}),
    )
    found.filters |= {
        "decimals": "{:.2f}".format,
        "latex": escape_latex,
        "markdown": escape_markdown,
        "signed": signed,
    }
    return found


def escape_latex(text: str) -> str:
    r"""Return a text that LaTeX sets as it is.

    Examples
    --------
    >>> print(escape_latex("5 % of a_b ±1"))
    5 \% of a\_b $\pm$1
    """
    return " ".join(text.split()).translate(_LATEX)


def escape_markdown(text: str) -> str:
    r"""Return a text that Markdown shows as it is, also within a table.

    Examples
    --------
    >>> print(escape_markdown("a|b *c* _d_"))
    a\|b \*c\* \_d\_
    """
    return re.sub(r"([\\`*_{}\[\]<>#|~&])", r"\\\1", " ".join(text.split()))
