// Lines with bands, drawn as SVG; nothing here knows what they mean.
const NS = 'http://www.w3.org/2000/svg';
const HIGH = 276, LEFT = 44, RIGHT = 10, TOP = 10, BOTTOM = 56;
export const COLOURS = 8;

// The look of the k-th class: eight colours, then the same with dashes.
export const look = k => `c${k % COLOURS}${Math.floor(k / COLOURS) % 2 ? ' dashed' : ''}`;

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

// A value without neighbours is no line: a point, and its interval as a stroke. ``aside`` keeps the
// points of several series apart.
function points(group, xs, one, x, y, aside) {
  const there = i => one.values[i] !== null && one.values[i] !== undefined;
  xs.forEach((at, i) => {
    if (!there(i) || there(i - 1) || there(i + 1)) return;
    const cx = (x(at) + aside).toFixed(1);
    if (one.low && one.low[i] !== null && one.high[i] !== null)
      group.append(element('path', {class: 'stroke', d: `M${cx} ${y(one.low[i])}L${cx} ${y(one.high[i])}`}));
    group.append(element('circle', {class: 'point', cx, cy: y(one.values[i]).toFixed(1), r: 4}));
  });
}

function axes(svg, width, y, first, last, bottom, times) {
  const ticks = bottom > 0 ? [bottom, (1 + bottom) / 2, 1] : [0, 0.25, 0.5, 0.75, 1];
  for (const tick of ticks) {
    svg.append(element('line', {class: 'grid', x1: LEFT, x2: width - RIGHT, y1: y(tick), y2: y(tick)}));
    const label = `${Math.round(tick * 100)} %`;
    svg.append(element('text', {x: LEFT - 6, y: y(tick) + 4, 'text-anchor': 'end'}, label));
  }
  const ends = [{x: LEFT}, {x: width - RIGHT, 'text-anchor': 'end'}];
  [`batch ${first}`, `batch ${last}`].slice(0, last > first ? 2 : 1).forEach((text, i) => {
    svg.append(element('text', {...ends[i], y: HIGH - 38}, text));
    if (times && times[i]) svg.append(element('text', {...ends[i], class: 'time', y: HIGH - 22}, times[i]));
  });
}

// series: [{values, low, high, look}]; regimes: a number for each x, or null; times: what stands below
// the first and the last x; alarms: stretches {from, to, begins} that are marked.
export function draw(holder, label, xs, series, {bottom = 0, regimes = null, times = null, alarms = []} = {}) {
  const width = Math.max(280, Math.min(holder.clientWidth || 700, 1100));
  const svg = element('svg', {viewBox: `0 0 ${width} ${HIGH}`, role: 'img', 'aria-label': label});
  const first = xs[0] ?? 0, last = xs[xs.length - 1] ?? 1;
  const x = v => LEFT + (width - LEFT - RIGHT) * (last > first ? (v - first) / (last - first) : 0.5);
  const y = v => TOP + (HIGH - TOP - BOTTOM) * (1 - (Math.max(v, bottom) - bottom) / (1 - bottom));
  for (const {from, to} of alarms) {
    const at = {x: x(from).toFixed(1), y: TOP, height: HIGH - TOP - BOTTOM};
    svg.append(element('rect', {class: 'alarm', ...at, width: Math.max(x(to) - x(from), 2).toFixed(1)}));
  }
  axes(svg, width, y, first, last, bottom, times);
  const apart = Math.min(14, (width - LEFT - RIGHT) / (series.length + 1));
  series.forEach((one, k) => {
    const group = element('g', {class: one.look});
    if (one.low) group.append(element('path', {class: 'band', d: band(xs, one.low, one.high, x, y)}));
    group.append(element('path', {class: 'mean', d: path(xs, one.values, x, y)}));
    points(group, xs, one, x, y, xs.length > 1 ? 0 : (k - (series.length - 1) / 2) * apart);
    svg.append(group);
  });
  for (const {from} of alarms.filter(({begins}) => begins)) {
    const at = x(from).toFixed(1), end = x(from) > width - 60 ? {'text-anchor': 'end', x: at - 4} : {x: +at + 4};
    svg.append(element('line', {class: 'alarm-begin', x1: at, x2: at, y1: TOP, y2: HIGH - BOTTOM}));
    svg.append(element('text', {class: 'alarm-name', ...end, y: TOP + 11}, 'alarm'));
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
    const part = element('g', {class: `c${names.indexOf(regime) % COLOURS}`});
    part.append(element('rect', {class: 'regime', ...at}));
    svg.append(part);
  });
}
