"""How a page looks: on a desk, on a telephone, on paper, by day and by night."""

from __future__ import annotations

STYLE = """
:root {
  color-scheme: light dark;
  --ink: #1b1e22; --soft: #545b64; --paper: #ffffff; --raised: #f4f5f7; --rule: #d5d9de;
  --link: #00568a; --good: #00694d; --bad: #a33f00;
}
@media (prefers-color-scheme: dark) {
  :root {
    --ink: #e6e8ea; --soft: #a9b0b8; --paper: #15181b; --raised: #20252a; --rule: #3a4149;
    --link: #7cc4f2; --good: #5fd0a8; --bad: #ff9d66;
  }
}
* { box-sizing: border-box; }
html { scroll-behavior: smooth; -webkit-text-size-adjust: 100%; }
body {
  margin: 0 auto; padding: 1.2rem 1rem 4rem; max-width: 76rem;
  background: var(--paper); color: var(--ink);
  font: 1rem/1.55 system-ui, "Segoe UI", Roboto, "DejaVu Sans", sans-serif;
  overflow-wrap: break-word;
}
h1 { font-size: 1.8rem; line-height: 1.2; margin: 0 0 0.6rem; }
h2 { font-size: 1.3rem; line-height: 1.3; margin: 0 0 0.8rem; padding-top: 1.2rem; }
section { border-top: 1px solid var(--rule); margin-top: 1.8rem; }
p, ul, dl { margin: 0 0 1rem; max-width: 46rem; }
a { color: var(--link); text-underline-offset: 0.15em; }
a:focus-visible, .wide:focus-visible { outline: 2px solid var(--link); outline-offset: 2px; }
.lead { font-size: 1.1rem; }
nav { background: var(--raised); border-radius: 0.5rem; padding: 0.8rem 1rem; font-size: 0.95rem; }
nav h2 { font-size: 0.95rem; margin: 0 0 0.3rem; padding: 0; }
nav ol { margin: 0; padding-left: 1.8rem; }
nav li { padding: 0.2rem 0; }
.wide { overflow-x: auto; margin: 0 0 1rem; max-width: 100%; }
table { border-collapse: collapse; font-size: 0.9rem; font-variant-numeric: tabular-nums; }
caption { text-align: left; padding-bottom: 0.5rem; font-weight: 600; }
caption .about { font-weight: 400; color: var(--soft); white-space: normal; }
caption .about { display: block; max-width: min(44rem, calc(100vw - 3rem)); }
th, td { padding: 0.3rem 0.65rem; text-align: right; vertical-align: top; white-space: nowrap; }
th[scope="row"], thead tr:first-child th:first-child {
  text-align: left; position: sticky; left: 0; background: var(--paper);
}
th[scope="colgroup"] { text-align: center; border-bottom: 1px solid var(--rule); }
thead tr:first-child th { border-top: 2px solid var(--ink); }
thead tr:last-child th { border-bottom: 1px solid var(--ink); }
tbody:last-of-type tr:last-child > * { border-bottom: 2px solid var(--ink); }
tbody + tbody tr:first-child > * { border-top: 1px solid var(--ink); }
td.apart, th.apart { border-left: 1px solid var(--rule); }
td.best { background: var(--raised); }
td .std, td .published, td .sketch { color: var(--soft); font-size: 0.85em; }
tr.notes td { text-align: left; white-space: normal; color: var(--soft); font-size: 0.9em; }
figure { margin: 0 0 1.6rem; max-width: 39rem; }
figure svg {
  display: block; width: 100%; height: auto; padding: 0.5rem;
  background: #ffffff; border: 1px solid var(--rule); border-radius: 0.4rem;
}
figcaption { margin-top: 0.5rem; font-size: 0.92rem; color: var(--soft); }
.files { font-size: 0.88rem; color: var(--soft); margin-top: 0.3rem; }
dl > div { display: grid; grid-template-columns: minmax(7rem, 13rem) 1fr; gap: 0 1rem; }
dl > div + div { border-top: 1px solid var(--rule); }
dt { color: var(--soft); padding: 0.2rem 0; }
dd { margin: 0; padding: 0.2rem 0; min-width: 0; overflow-wrap: anywhere; }
.claims { list-style: none; padding: 0; }
.claims li { padding: 0.35rem 0 0.35rem 0.8rem; border-left: 0.25rem solid; margin-bottom: 0.4rem; }
.claims .holds { border-color: var(--good); }
.claims .fails { border-color: var(--bad); border-left-style: dashed; }
.claims b { margin-right: 0.3rem; }
.claims .holds b { color: var(--good); }
.claims .fails b { color: var(--bad); }
.claims small { display: block; color: var(--soft); font-size: 0.88rem; }
@media (min-width: 64rem) {
  .columns { display: grid; grid-template-columns: 14rem minmax(0, 1fr); gap: 2.5rem; }
  nav { position: sticky; top: 1rem; align-self: start; max-height: 95vh; overflow-y: auto; }
  main section:first-child { border-top: 0; margin-top: 0; }
  main section:first-child h2 { padding-top: 0; }
}
@media (max-width: 30rem) {
  body { padding: 0.9rem 0.8rem 3rem; }
  figure svg { padding: 0.15rem; }
  th, td { padding: 0.25rem 0.45rem; }
}
@media (prefers-reduced-motion: reduce) { html { scroll-behavior: auto; } }
@media print {
  :root {
    color-scheme: light;
    --ink: #000; --soft: #333; --paper: #fff; --raised: #fff; --rule: #999;
    --link: #000; --good: #000; --bad: #000;
  }
  body { max-width: none; padding: 0; font-size: 10pt; }
  .columns { display: block; }
  nav { position: static; padding: 0; }
  .wide { overflow: visible; }
  table { font-size: 7pt; }
  th, td { padding: 0.1rem 0.2rem; white-space: normal; overflow-wrap: normal; }
  figure, tr, .claims li, dl > div { break-inside: avoid; }
  figure { max-width: 13cm; }
  figure svg { border: 0; padding: 0; max-height: 22cm; }
  h2 { break-after: avoid; }
  thead { display: table-header-group; }
}
"""
"""The style sheet that every page carries in itself."""
