// Rows of numbers out of the text of a CSV file; a first line of names is left out.
export function rowsOf(text) {
  const lines = text.split(/\r?\n/).filter(line => line.trim() !== '');
  const rows = lines.map(line => line.split(/[,;\t]/).map(cell => cell.trim().replace(/^"(.*)"$/, '$1')));
  if (rows.length && rows[0].every(cell => cell === '' || Number.isNaN(Number(cell)))) rows.shift();
  if (!rows.length) throw new Error('the file has no rows');
  return rows.map((row, n) => {
    if (row.length !== rows[0].length)
      throw new Error(`row ${n + 1} has ${row.length} columns, the first has ${rows[0].length}`);
    return row.map(cell => {
      if (cell === '') return null;
      if (Number.isNaN(Number(cell))) throw new Error(`row ${n + 1} holds "${cell}", which is no number`);
      return Number(cell);
    });
  });
}
