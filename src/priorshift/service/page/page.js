import {draw} from './chart.js';
import {numbersOf, tableOf} from './csv.js';

const $ = id => document.getElementById(id);
const MOST = 400;   // points of a chart
const AGAIN = 3000; // milliseconds until a lost connection is tried again
let chosen = null;  // the name of the stream that is shown
let shown = null;   // what is known of it: {classes, round, prior, low, high, ...}
let busy = false;
let work = Promise.resolve(); // what is being shown now
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

const percent = v => v === null || v === undefined ? 'unknown' : `${(100 * v).toFixed(1)} %`;

async function showStreams() {
  const {streams} = await get('/v1/streams?limit=200');
  $('no-streams').hidden = streams.length > 0;
  const old = new Map([...$('streams').children].map(item => [item.dataset.name, item]));
  for (const one of streams) {
    let item = old.get(one.stream);
    old.delete(one.stream);
    if (!item) {
      item = made('li', null);
      item.dataset.name = one.stream;
      const button = made('button', null, {type: 'button'});
      button.append(made('span', one.stream), made('span', '', {class: 'version'}));
      button.addEventListener('click', () => choose(one.stream));
      item.append(button);
      $('streams').append(item);
    }
    item.querySelector('.version').textContent = `version ${one.version}`;
    item.firstChild.setAttribute('aria-current', String(one.stream === chosen));
  }
  for (const item of old.values()) item.remove();
  if (chosen === null && streams.length) await choose(streams[0].stream, false);
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
  if (shown === null) {
    const about = await get(streamPath(name));
    const model = await get(`/v2/models/${encodeURIComponent(about.model)}`);
    if (name !== chosen) return;
    shown = {classes: about.classes, takes: model.inputs[0].name, names: model.columns, columns: {}};
    const what = shown.names ? `the columns ${shown.names.join(', ')}, in any order`
      : 'the columns that the model reads, in their order';
    $('csv-columns').textContent = what;
  }
  await addHistory(name);
  const [guard, performance] = await Promise.all(
    [get(streamPath(name, '/guard')), get(streamPath(name, '/performance')).catch(() => null)]);
  if (name !== chosen) return;
  showFacts(guard, performance);
  showCharts();
  showTable();
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

function fact(term, value, small, kind = '') {
  const found = made('div', null), said = made('dd', value, {class: kind});
  if (small) said.append(made('small', small));
  found.append(made('dt', term), said);
  return found;
}

function showFacts(guard, performance) {
  const rounds = shown.columns.round || [];
  const facts = [fact('Batches learned', String(rounds[rounds.length - 1] || 0))];
  if (performance) {
    for (const [term, of] of [['adapted', performance], ['unadapted', performance.unadapted]]) {
      const a = of.accuracy;
      facts.push(fact(`Accuracy, ${term}`, percent(a.value), `${percent(a.low)} to ${percent(a.high)}`));
    }
  }
  if (!guard.watching) facts.push(fact('Guard', 'not watching'));
  else if (guard.now) facts.push(fact('Guard', 'alarm', guard.evidence, 'bad'));
  else facts.push(fact('Guard', 'label shift holds', `p = ${guard.p_value.toPrecision(2)}`, 'good'));
  const p = shown.columns.shift_p_value || [];
  if (p.length) facts.push(fact('Shift', p[p.length - 1] < 0.05 ? 'the class prior has moved' : 'none seen',
    `p = ${p[p.length - 1].toPrecision(2)}`));
  $('facts').replaceChildren(...facts);
}

function showCharts() {
  const c = shown.columns, xs = c.round || [];
  const last = xs.length - 1;
  const column = (table, k) => (table || []).map(row => row[k]);
  const series = shown.classes.map((_, k) => ({
    values: column(c.prior, k), low: column(c.low, k), high: column(c.high, k), color: k,
  }));
  const now = shown.classes.map((label, k) => `${label} ${last < 0 ? 'unknown' : percent(c.prior[last][k])}`);
  const regimes = c.regime && c.regime.some(r => r >= 0) ? c.regime : null;
  draw($('prior-chart'), `Class prior: ${now.join(', ')}`, xs, series, {regimes});
  $('prior-caption').textContent = 'Class prior over time, with its 90 % interval'
    + (regimes ? '; below, the regime' : '');
  $('legend').replaceChildren(...now.map((text, k) => made('li', text, {class: `c${k % 8}`})));
  const lines = [['adapted', c.accuracy], ['unadapted', c.accuracy_unadapted]];
  const all = lines.flatMap(([, values]) => (values || []).filter(v => v !== null));
  const bottom = all.length && Math.min(...all) > 0.5 ? 0.5 : 0;
  const said = lines.map(([name, values]) => `${name} ${percent((values || [])[last] ?? null)}`);
  draw($('accuracy-chart'), `Estimated accuracy: ${said.join(', ')}`, xs,
    lines.map(([, values], k) => ({values: values || [], color: k, dashed: k === 1})), {bottom});
  $('accuracy-legend').replaceChildren(...said.map((text, k) => made('li', text, {class: `c${k}`})));
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
    const cells = [c.round[i], when === null ? '' : new Date(1000 * when).toLocaleString(), c.rows[i],
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
    if (error.status === 404) chosen = null;
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
  const said = $('csv-said'), name = chosen, kind = shown.takes;
  try {
    const table = tableOf(await file.text(), shown.names), mark = Date.now().toString(36);
    const rows = table.columns ? table.rows : numbersOf(table.rows);
    for (let start = 0; start < rows.length; start += 100) {
      const body = {batch_id: `${file.name.slice(0, 100)} ${mark} ${start}`, [kind]: rows.slice(start, start + 100)};
      if (table.columns) body.columns = table.columns;
      await send('POST', streamPath(name, '/batches'), body);
      said.textContent = `${Math.min(start + 100, rows.length)} of ${rows.length} rows sent`;
    }
  } catch (error) {
    said.textContent = `Refused: ${error.message}`;
  }
  await refresh();
}

$('key-form').addEventListener('submit', event => {
  event.preventDefault();
  sessionStorage.setItem('key', $('key').value);
  $('key').value = '';
  location.reload();
});
$('new-form').addEventListener('submit', async event => {
  event.preventDefault();
  const name = $('new-name').value;
  await send('PUT', streamPath(name), {model: $('new-model').value}).catch(() => null);
  $('new-name').value = '';
  await refresh();
  if ([...$('streams').children].some(item => item.dataset.name === name)) await choose(name);
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
