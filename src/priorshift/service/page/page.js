import {COLOURS, draw, look} from './chart.js';
import {numbersOf, tableOf} from './csv.js';
import {ago, chance, date, guardSays, percent, several, shortDate} from './words.js';

const $ = id => document.getElementById(id);
const MOST = 400;   // points of a chart
const AGAIN = 3000; // milliseconds until a lost connection is tried again
const PART = 50;    // streams that are listed, and that "more" adds
const ALL = 1000;   // streams that the service lists at most
let chosen = null;  // the name of the stream that is shown
let shown = null;   // what is known of it: {classes, round, prior, low, high, ...}
let busy = false;
let work = Promise.resolve(); // what is being shown now
let limit = PART;
let asked = 0;      // counts lists that were asked for: only the answer to the last is shown
let leaving = null; // ends the connection that changes come over

async function ask(path, options = {}) {
  const key = sessionStorage.getItem('key');
  const headers = {...options.headers, ...(key ? {authorization: `Bearer ${key}`} : {})};
  const response = await fetch(path, {...options, headers});
  if (response.status === 401) $('key-form').hidden = false;
  if (!response.ok) {
    const found = await response.json().catch(() => ({}));
    throw Object.assign(new Error(found.error || response.statusText), {status: response.status});
  }
  return response;
}
const get = async path => (await ask(path)).json();
const send = async (method, path, body) => (await ask(path, {
  method, body: JSON.stringify(body), headers: {'content-type': 'application/json'},
})).json();
const streamPath = (name, rest = '') => `/v1/streams/${encodeURIComponent(name)}${rest}`;

function made(name, text, attributes = {}) {
  const found = document.createElement(name);
  if (text !== null) found.textContent = text;
  for (const [key, value] of Object.entries(attributes)) found.setAttribute(key, value);
  return found;
}

async function showStreams() {
  const mine = ++asked, match = $('find').value.trim();
  const found = await get(`/v1/overview?limit=${limit}&match=${encodeURIComponent(match)}`);
  if (mine !== asked) return;
  const {streams} = found;
  if (found.count === 0 && $('no-streams').hidden) $('new').open = true;
  $('no-streams').hidden = found.count > 0;
  $('find-form').hidden = found.count === 0;
  sayStreams(found, match);
  $('more').hidden = streams.length === found.found || limit >= ALL;
  const old = new Map([...$('streams').children].map(item => [item.dataset.name, item]));
  const items = streams.map(one => listed(old.get(one.stream) || streamItem(one.stream), one));
  // Nothing moves under a finger: then what is there stays in its order, and the new comes last.
  const box = $('streams-box');
  if (box.matches(':hover') || box.contains(document.activeElement)) {
    for (const item of old.values()) if (!items.includes(item)) item.remove();
    for (const item of items) if (!item.isConnected) $('streams').append(item);
  } else if (items.some((item, i) => item !== $('streams').children[i]) || old.size !== items.length)
    $('streams').replaceChildren(...items);
  if (chosen === null && streams.length) await choose(streams[0].stream, false);
}

function sayStreams({streams, found, count, alarms}, match) {
  const parts = match === '' ? [`${streams.length} of ${several(count, 'stream')}`]
    : [`${streams.length} of ${found} found among ${several(count, 'stream')}`];
  if (alarms) parts.push(`${several(alarms, 'alarm')} of the guard`);
  if (streams.length < found && limit >= ALL) parts.push('find others by name');
  const said = parts.join('; ');
  if ($('streams-said').textContent !== said) $('streams-said').textContent = said;
}

function streamItem(name) {
  const item = made('li', null), button = made('button', null, {type: 'button'});
  item.dataset.name = name;
  button.append(made('span', name), made('span', '', {class: 'alarm'}), made('span', '', {class: 'about'}));
  button.addEventListener('click', () => choose(name));
  item.append(button);
  return item;
}

function listed(item, one) {
  item.querySelector('.alarm').textContent = one.alarm ? 'alarm' : '';
  item.querySelector('.alarm').hidden = !one.alarm;
  item.querySelector('.about').textContent = ago(one.updated);
  item.firstChild.setAttribute('aria-current', String(one.stream === chosen));
  return item;
}

async function choose(name, focus = true) {
  chosen = name;
  shown = null;
  $('stream').hidden = false;
  $('stream-title').textContent = name;
  for (const item of $('streams').children)
    item.firstChild.setAttribute('aria-current', String(item.dataset.name === name));
  await showStream();
  if (focus) $('stream-title').focus();
}

// One after the other: what is shown is never made of two answers.
function showStream() {
  return work = work.then(showChosen, showChosen);
}

async function showChosen() {
  const name = chosen;
  if (name === null) return;
  const about = await get(streamPath(name));
  if (name !== chosen) return;
  if (shown !== null && !goesOn(about)) shown = null;
  if (shown === null) {
    const model = await get(`/v2/models/${encodeURIComponent(about.model)}`);
    if (name !== chosen) return;
    shown = {created: about.created, classes: about.classes, takes: model.inputs[0].name, names: model.columns, columns: {}};
    const what = shown.names ? `the columns ${shown.names.join(', ')}, in any order`
      : 'the columns that the model reads, in their order';
    $('csv-columns').textContent = what;
  }
  await addHistory(name);
  const [guard, performance] = await Promise.all(
    [get(streamPath(name, '/guard')), get(streamPath(name, '/performance')).catch(() => null)]);
  if (name !== chosen) return;
  shown.guard = guard;
  showFacts(about, guard, performance);
  showCharts();
  showTable();
}

// Whether a stream is the one that is shown, later on: not one that was made anew, or put back.
function goesOn(about) {
  const known = shown.columns.round || [];
  return about.created === shown.created && (!known.length || known[known.length - 1] <= about.rounds);
}

// Only what is new is asked for: the past does not change.
async function addHistory(name) {
  const into = shown, known = into.columns.round || [];
  const after = known.length ? known[known.length - 1] : 0;
  const page = await get(streamPath(name, `/history?last=true&after=${after}`)).catch(() => null);
  if (page === null || into !== shown) return;
  for (const [column, values] of Object.entries(page.columns))
    into.columns[column] = [...(into.columns[column] || []), ...values].slice(-MOST);
}

function fact(term, value, small = '', kind = '', lines = []) {
  const found = made('div', null), said = made('dd', value, {class: kind});
  said.append(...lines.filter(Boolean).map(line => made('p', line)));
  if (small) said.append(made('small', small));
  found.append(made('dt', term), said);
  return found;
}

function showFacts(about, guard, performance) {
  const c = shown.columns, times = (c.received || []).filter(time => time !== null);
  const last = times.length ? times[times.length - 1] : about.updated;
  const facts = [fact('Batches learned', String(about.rounds)),
    about.rounds ? fact('Last batch', ago(last), date(last)) : fact('Made', ago(about.created), date(about.created)),
    fact('Model', about.model, `version ${about.model_version}`)];
  const doubt = guard.now ? '; not to be relied on: it assumes label shift, which the guard denies' : '';
  if (performance) {
    for (const [term, of] of [['adapted', performance], ['unadapted', performance.unadapted]]) {
      const a = of.accuracy;
      facts.push(fact(`Accuracy, ${term}`, percent(a.value), `${percent(a.low)} to ${percent(a.high)}${doubt}`));
    }
  }
  const says = guardSays(guard), told = fact('Guard', says.word, says.small, says.kind, says.lines);
  if (guard.now) {
    told.className = 'whole';
    facts.unshift(told);
  } else facts.push(told);
  const p = c.shift_p_value || [];
  if (p.length) facts.push(fact('Shift', p[p.length - 1] < 0.05 ? 'the class prior has moved' : 'none seen',
    chance(p[p.length - 1])));
  $('facts').replaceChildren(...facts);
}

// Stretches {from, to} of the history during which the alarm stood, and the first alarm's batch; one
// that may be older than what is shown is not said to begin there.
function alarmsOf(guard) {
  const xs = shown.columns.round || [], shares = shown.columns.guard || [], found = [];
  shares.forEach((share, i) => {
    if (share < 1) return;
    if (i && shares[i - 1] >= 1) found[found.length - 1].to = xs[i];
    else found.push({from: xs[i], to: xs[i], begins: i > 0 || xs[i] === 1});
  });
  // Where old batches were merged the first alarm may lie inside of one record.
  const record = xs.find(x => x >= guard.round);
  if (guard.alarm && guard.round >= xs[0] && record && !found.some(({from}) => from === record))
    found.unshift({from: guard.round, to: guard.round, begins: true});
  return found;
}

const saysAlarm = ({from, to, begins}) => begins ? `from batch ${from} to ${to}` : `up to batch ${to}`;

function showCharts() {
  const c = shown.columns, xs = c.round || [], guard = shown.guard;
  const last = xs.length - 1;
  const column = (table, k) => (table || []).map(row => row[k]);
  const series = shown.classes.map((_, k) => ({
    values: column(c.prior, k), low: column(c.low, k), high: column(c.high, k), look: look(k),
  }));
  const now = shown.classes.map((label, k) => `${label} ${last < 0 ? 'unknown' : percent(c.prior[last][k])}`);
  const regimes = c.regime && c.regime.some(r => r >= 0) ? c.regime : null;
  const alarms = alarmsOf(guard), received = c.received || [];
  const ends = [received[0], received[last]].map(time => time ? shortDate(time) : '');
  const times = ends.some(Boolean) ? ends : null;
  const marked = alarms.length ? `; the guard's alarm ${alarms.map(saysAlarm).join(', ')}` : '';
  const notes = [times ? 'Below the batches, when they were received.' : '', regimes
    ? 'The strip shows regimes, class mixes that come back: the same colour is the same mix.' : ''];
  draw($('prior-chart'), `Class prior: ${now.join(', ')}${marked}`, xs, series, {regimes, times, alarms});
  $('prior-caption').textContent = `Class prior over time, with its 90 % interval${marked}`;
  $('prior-note').textContent = notes.filter(Boolean).join(' ');
  $('legend').replaceChildren(...now.map((text, k) => made('li', text, {class: look(k)})));
  $('many-classes').hidden = shown.classes.length <= 2 * COLOURS;
  const lines = [['adapted', c.accuracy], ['unadapted', c.accuracy_unadapted]];
  const all = lines.flatMap(([, values]) => (values || []).filter(v => v !== null));
  const bottom = all.length && Math.min(...all) > 0.5 ? 0.5 : 0;
  const said = lines.map(([name, values]) => `${name} ${percent((values || [])[last] ?? null)}`);
  const looks = ['c0', 'c1 dashed'];
  draw($('accuracy-chart'), `Estimated accuracy: ${said.join(', ')}${marked}`, xs,
    lines.map(([, values], k) => ({values: values || [], look: looks[k]})), {bottom, times, alarms});
  $('accuracy-caption').textContent = 'Accuracy, estimated without labels'
    + (guard.now ? ', as if label shift held: the guard denies that' : '');
  $('accuracy-legend').replaceChildren(...said.map((text, k) => made('li', text, {class: looks[k]})));
}

function showTable() {
  const c = shown.columns, count = (c.round || []).length;
  const names = ['Batch', 'Received', 'Rows', ...shown.classes.map(String), 'Accuracy'];
  const head = made('tr', null);
  head.append(...names.map(name => made('th', name, {scope: 'col'})));
  $('table-head').replaceChildren(head);
  const rows = [];
  for (let i = count - 1; i >= Math.max(0, count - 20); i--) {
    const row = made('tr', null), when = c.received[i];
    const cells = [c.round[i], when === null ? '' : date(when), c.rows[i],
      ...c.prior[i].map(percent), percent(c.accuracy[i])];
    row.append(...cells.map(text => made('td', String(text))));
    rows.push(row);
  }
  $('table-body').replaceChildren(...rows);
}

async function showErrors() {
  const {errors} = await get('/v1/errors');
  $('no-errors').hidden = errors.length > 0;
  $('errors').replaceChildren(...errors.slice(0, 8).map(one => {
    const item = made('li', `${new Date(1000 * one.at).toLocaleTimeString()} `);
    item.append(made('code', one.code), ` ${one.error} (${one.path}, request ${one.request_id})`);
    return item;
  }));
}

async function refresh() {
  if (busy) return;
  busy = true;
  try {
    await showStreams();
    await showStream();
    await showErrors();
  } catch (error) {
    if (error.status === 404) {  // the stream is gone
      chosen = shown = null;
      $('stream').hidden = true;
    }
  } finally {
    busy = false;
  }
}

async function watch() {
  const live = $('live');
  for (;;) {
    try {
      leaving = new AbortController();
      const response = await ask('/v1/events', {signal: leaving.signal});
      $('key-form').hidden = true;
      live.className = 'on';
      live.textContent = 'live';
      const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
      for (;;) {
        const {done, value} = await reader.read();
        if (done) break;
        if (value.includes('event: change')) await refresh();
      }
    } catch (error) { /* the service is away: said below, and tried again */ }
    live.className = 'off';
    live.textContent = 'not connected';
    await new Promise(resolve => setTimeout(resolve, AGAIN));
  }
}

async function sendFile(file) {
  await work.catch(() => null);  // the stream may be about to be shown
  if (shown === null) return;
  const said = $('csv-said'), name = chosen, kind = shown.takes;
  let table = {columns: null}, sent = 0;
  try {
    table = tableOf(await file.text(), shown.names);
    const mark = Date.now().toString(36);
    const rows = table.columns ? table.rows : numbersOf(table.rows);
    for (let start = 0; start < rows.length; start += 100) {
      const body = {batch_id: `${file.name.slice(0, 100)} ${mark} ${start}`, [kind]: rows.slice(start, start + 100)};
      if (table.columns) body.columns = table.columns;
      await send('POST', streamPath(name, '/batches'), body);
      sent = Math.min(start + 100, rows.length);
      said.textContent = `${sent} of ${rows.length} rows sent`;
    }
  } catch (error) {
    const named = table.columns ? ' (the first line of the file was taken as names)' : '';
    const before = sent ? `; the first ${sent} rows were learned` : '';
    said.textContent = `Refused: ${error.message}${named}${before}`;
  }
  await refresh();
}

$('key-form').addEventListener('submit', event => {
  event.preventDefault();
  sessionStorage.setItem('key', $('key').value);
  $('key').value = '';
  location.reload();
});
let typing = null;
$('find').addEventListener('input', () => {
  clearTimeout(typing);
  limit = PART;
  typing = setTimeout(() => showStreams().catch(() => null), 200);
});
$('find-form').addEventListener('submit', event => {
  event.preventDefault();
  const [first] = $('streams').children;
  if (first) choose(first.dataset.name);
});
$('more').addEventListener('click', async () => {
  limit = Math.min(limit + PART, ALL);
  const before = $('streams').children.length;
  await showStreams().catch(() => null);
  const next = $('streams').children[before];
  if (next) next.firstChild.focus();
});
$('new-form').addEventListener('submit', async event => {
  event.preventDefault();
  const name = $('new-name').value;
  const found = await send('PUT', streamPath(name), {model: $('new-model').value}).catch(() => null);
  if (found !== null) $('new-name').value = '';
  await refresh();  // which lists the refusal, if there was one
  if (found !== null) await choose(name);
});
$('csv').addEventListener('change', event => {
  const [file] = event.target.files;
  event.target.value = '';  // so that the same file can be chosen again
  if (file) sendFile(file);
});
const zone = $('csv-form');
zone.addEventListener('dragover', event => { event.preventDefault(); zone.classList.add('over'); });
zone.addEventListener('dragleave', () => zone.classList.remove('over'));
zone.addEventListener('drop', event => {
  event.preventDefault();
  zone.classList.remove('over');
  if (event.dataTransfer.files[0]) sendFile(event.dataTransfer.files[0]);
});
zone.addEventListener('submit', event => event.preventDefault());
// A browser keeps few connections to one service: a page that is left gives its own back.
window.addEventListener('pagehide', () => leaving && leaving.abort());
let turn = null;
window.addEventListener('resize', () => {
  clearTimeout(turn);
  turn = setTimeout(() => shown && showCharts(), 150);
});
get('/v1/models').then(({models}) => {
  $('new-model').replaceChildren(...models.map(name => made('option', name, {value: name})));
}).catch(() => null);
watch();
