// The records of a CSV file: cells between commas, semicolons or tabs, text with these in quotes.
function recordsOf(text) {
  const first = text.slice(0, (text + '\n').indexOf('\n'));
  const separator = [',', ';', '\t'].reduce((a, b) => first.split(b).length > first.split(a).length ? b : a);
  const records = [];
  let record = [], cell = '', quoted = false;
  const ended = () => { record.push(cell); cell = ''; };
  for (let i = 0; i < text.length; i++) {
    const c = text[i];
    if (quoted) {
      if (c !== '"') cell += c;
      else if (text[i + 1] === '"') { cell += c; i++; }
      else quoted = false;
    } else if (c === '"' && cell === '') quoted = true;
    else if (c === separator) ended();
    else if (c === '\n') { ended(); records.push(record); record = []; }
    else if (c !== '\r') cell += c;
  }
  if (quoted) throw new Error('a quote in the file is never closed');
  if (cell !== '' || record.length) { ended(); records.push(record); }
  return records.filter(cells => cells.some(one => one.trim() !== ''));
}

const isNumber = cell => cell.trim() !== '' && Number.isFinite(Number(cell));

// Rows of a CSV file, and the names in its first line (null where it has numbers): the service finds
// columns by their names, and reads text as the model does.
export function tableOf(text, known) {
  const rows = recordsOf(text.replace(/^\ufeff/, ''));
  const first = rows.length ? rows[0].map(name => name.trim()) : [];
  const named = !first.some(isNumber) || known !== null && known.every(name => first.includes(String(name)));
  if (named && first.length === 2 && first.every(isNumber))  // as probabilities of two classes are
    throw new Error(`the first line, ${first}, may be names or numbers: call the columns p_${first[0]} and p_${first[1]}`);
  const columns = named ? first : null;
  if (named) rows.shift();
  if (!rows.length) throw new Error('the file has no rows');
  const width = (columns || rows[0]).length;
  rows.forEach((row, n) => {
    if (row.length !== width)
      throw new Error(`row ${n + 1}${columns ? ' after the names' : ''} has ${row.length} columns, the first line has ${width}`);
  });
  return {columns, rows};
}

// Without names all cells have to be numbers.
export function numbersOf(rows) {
  return rows.map((row, n) => row.map(cell => {
    if (cell.trim() === '') return null;
    if (!isNumber(cell)) throw new Error(`row ${n + 1} holds "${cell}", which is no number: give the columns names in a first line`);
    return Number(cell);
  }));
}
