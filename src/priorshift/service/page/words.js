// What numbers mean, in words for somebody who has just been woken up.
export const percent = v => v === null || v === undefined ? 'unknown' : `${(100 * v).toFixed(1)} %`;

export const several = (count, one) => `${count} ${count === 1 ? one : `${one}s`}`;

export function chance(p) {
  if (p < 0.001) return 'p < 0.001';
  return p < 0.5 ? `p = ${p.toPrecision(2)}` : 'no evidence';
}

export function ago(seconds) {
  const s = Math.max(0, Date.now() / 1000 - seconds);
  if (s < 60) return 'just now';
  for (const [size, name] of [[86400, 'day'], [3600, 'hour'], [60, 'minute']])
    if (s >= size) return `${several(Math.floor(s / size), name)} ago`;
}

export const date = seconds => new Date(1000 * seconds).toLocaleString();

const SHORT = {month: 'short', day: 'numeric', hour: '2-digit', minute: '2-digit'};
export const shortDate = seconds => new Date(1000 * seconds).toLocaleString(undefined, SHORT);

const SEEN = {
  confidence: 'The model is surer, or less sure, of many rows than it is of any of its classes.',
  distance: 'Many rows lie nearer to the known classes, or further from them, than rows of any class do.',
  neighbour: 'Many rows lie nearer to known rows, or further from them, than rows of any class do.',
  residual: 'The columns go together otherwise than in any of the classes.',
  feature: 'A column has values that no mix of the classes explains.',
  'log-probability': 'The model gives probabilities that no mix of the classes explains.',
};

// What the guard has found: a word, sentences, the evidence, and whether that is good or bad.
export function guardSays(guard) {
  if (!guard.watching) return {word: 'not watching', lines: [], small: '', kind: ''};
  const seen = SEEN[guard.kind] || '';
  const first = `batch ${guard.round}: ${guard.evidence}; ${chance(guard.p_value)}`;
  if (guard.now) {
    const answers = guard.own_model >= 1
      ? 'Predictions are now those of your model as it is: none is adapted until the cause is gone.'
      : 'Predictions are still adapted, as this source asks for, and may be wrong.';
    const lines = [answers, seen, 'So the rows are no longer a mix of the classes that the model knows: '
      + 'look for a broken sensor, a changed column or a new class.'];
    return {word: 'alarm', lines, small: `First seen at ${first}`, kind: 'bad'};
  }
  const lines = [];
  if (guard.own_model > 0)
    lines.push(`For caution your model as it is has ${percent(guard.own_model)} of every prediction.`);
  const quiet = guard.p_value < 0.5 ? chance(guard.p_value) : 'no evidence against it';
  const doubt = guard.share >= 0.5;  // half of the way to an alarm
  if (!guard.alarm && doubt) return {word: 'label shift is in doubt', lines, small: quiet, kind: ''};
  if (!guard.alarm) return {word: 'label shift holds', lines, small: quiet, kind: 'good'};
  lines.unshift('There was an alarm, and its cause has gone.', seen);
  return {word: 'no alarm now', lines, small: `Seen at ${first}`, kind: ''};
}
