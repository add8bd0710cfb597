// Lines with bands, drawn as SVG; nothing here knows what they mean.
const NS = 'http://www.w3.org/2000/svg';
const HIGH = 260, LEFT = 44, RIGHT = 10, TOP = 10, BOTTOM = 40;

function element(name, attributes, text) {
  const found = document.createElementNS(NS, name);
  for (const [key, value] of Object.entries(attributes)) found.setAttribute(key, value);
  if (text !== undefined) found.textContent = text;
  return found;
}

// Points of a line as a path; where a value is missing the line is broken.
function path(xs, ys, x, y) {
  let text = '', pen = 'M';
  ys.forEach((value, i) => {
    if (value === null) { pen = 'M'; return; }
    text += `${pen}${x(xs[i]).toFixed(1)} ${y(value).toFixed(1)}`;
    pen = 'L';
  });
  return text;
}

function band(xs, low, high, x, y) {
  const there = xs.map((_, i) => i).filter(i => low[i] !== null && high[i] !== null);
  if (there.length < 2) return '';
  const up = there.map(i => `${x(xs[i]).toFixed(1)} ${y(high[i]).toFixed(1)}`);
  const down = there.reverse().map(i => `${x(xs[i]).toFixed(1)} ${y(low[i]).toFixed(1)}`);
  return `M${[...up, ...down].join('L')}Z`;
}

function axes(svg, width, x, y, first, last, bottom) {
  const ticks = bottom > 0 ? [bottom, (1 + bottom) / 2, 1] : [0, 0.25, 0.5, 0.75, 1];
  for (const tick of ticks) {
    svg.append(element('line', {class: 'grid', x1: LEFT, x2: width - RIGHT, y1: y(tick), y2: y(tick)}));
    const label = `${Math.round(tick * 100)} %`;
    svg.append(element('text', {x: LEFT - 6, y: y(tick) + 4, 'text-anchor': 'end'}, label));
  }
  svg.append(element('text', {x: LEFT, y: HIGH - 22}, `batch ${first}`));
  if (last > first)
    svg.append(element('text', {x: width - RIGHT, y: HIGH - 22, 'text-anchor': 'end'}, last));
}

// series: [{values, low, high, color, dashed}]; regimes: a number for each x, or null.
export function draw(holder, label, xs, series, {bottom = 0, regimes = null} = {}) {
  const width = Math.max(280, Math.min(holder.clientWidth || 700, 1100));
  const svg = element('svg', {viewBox: `0 0 ${width} ${HIGH}`, role: 'img', 'aria-label': label});
  const first = xs[0] ?? 0, last = xs[xs.length - 1] ?? 1;
  const x = v => LEFT + (width - LEFT - RIGHT) * (last > first ? (v - first) / (last - first) : 0.5);
  const y = v => TOP + (HIGH - TOP - BOTTOM) * (1 - (Math.max(v, bottom) - bottom) / (1 - bottom));
  axes(svg, width, x, y, first, last, bottom);
  for (const one of series) {
    const group = element('g', {class: `c${one.color % 8}`});
    if (one.low) group.append(element('path', {class: 'band', d: band(xs, one.low, one.high, x, y)}));
    const kind = one.dashed ? 'mean dashed' : 'mean';
    group.append(element('path', {class: kind, d: path(xs, one.values, x, y)}));
    svg.append(group);
  }
  if (regimes) strip(svg, width, xs, regimes, x);
  holder.replaceChildren(svg);
}

// A strip below the chart: one colour for each regime, in the order in which they were first seen.
function strip(svg, width, xs, regimes, x) {
  const names = [...new Set(regimes)].sort((a, b) => a - b);
  regimes.forEach((regime, i) => {
    const from = i ? (x(xs[i - 1]) + x(xs[i])) / 2 : LEFT;
    const to = i + 1 < xs.length ? (x(xs[i]) + x(xs[i + 1])) / 2 : width - RIGHT;
    const at = {x: from.toFixed(1), y: HIGH - 14, width: Math.max(to - from, 0.5).toFixed(1), height: 8};
    const part = element('g', {class: `c${names.indexOf(regime) % 8}`});
    part.append(element('rect', {class: 'regime', ...at}));
    svg.append(part);
  });
}
