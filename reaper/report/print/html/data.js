
// The report. Each text of it may be hostile, so it gets into the page by text nodes and
// attributes without effect only, after shown() escaped it.
const data = JSON.parse(document.getElementById('data').textContent);
const report = data.report;
const narrow = window.matchMedia('(max-width: 560px)');
const isRestore = report.kind === 'RestoreReport';
const asOf = Date.parse(report.run.finishedAt) > 0 ? report.run.finishedAt : report.run.startedAt;

// STATES are the ways to draw an entry, the most urgent one first. What has another status is counted and
// filtered as that.
const STATES = [
  { key: 'f', name: 'failed', label: 'failed', about: 'the write may or may not have happened' },
  { key: 'd', name: 'due', label: 'due', about: 'no owner, and the grace period is over' },
  { key: 'w', name: 'waiting', label: 'waiting', about: 'no owner, but the grace period is not over' },
  { key: 'y', name: 'waiting', label: 'waiting', about: 'too young to tell whether it leaked' },
  { key: 'h', name: 'held', label: 'held', about: 'no owner, but kept for another reason' },
  { key: 'p', name: 'protected', label: 'protected', status: 'held', about: 'no owner, but something else protects the address' },
  { key: 'r', name: 'released', label: 'released', about: 'released by this run' },
  { key: 'T', name: 'held', label: 'taken', about: 'another owner has its place; nothing was written' },
  { key: 'P', name: 'waiting', label: 'planned', about: 'a real restore would try to put it back' },
  { key: 'R', name: 'released', label: 'restored', about: 'the store holds it again' },
  { key: 'S', name: 'inuse', label: 'present', about: 'the store held it already' },
  { key: 'c', name: 'other', label: 'changed', status: 'other', about: 'changed by another client during the run' },
  { key: 'u', name: 'other', label: 'undecided', status: 'other', about: 'nobody can tell whether it leaked' },
  { key: 'n', name: 'other', label: 'not a pod’s', status: 'other', about: 'a tunnel, for example' },
  { key: 'o', name: 'other', label: 'other', about: 'kept, and nothing says that it leaked' },
  { key: 'i', name: 'inuse', label: 'in use', about: 'a pod has the address' },
  { key: 'x', name: 'failed', label: 'not recorded', about: 'a pod shows the address, and no store has it' },
  { key: '-', name: 'free', label: 'not allocated', about: 'the pool holds no entry for the address' },
];
const statusOf = (index) => STATES[index].status || STATES[index].label;
const FREE = STATES.length - 1;
if (report.run.selection) STATES[FREE].label = 'not allocated, or not selected';
const stateIndex = new Map(STATES.map((state, index) => [state.key, index]));

// entries have what the page filters and sorts by beside the entry itself.
const entries = (report.entries || []).map((e, index) => ({
  e,
  state: stateIndex.get(data.states[index]),
  order: addressKey(e.ip) || '9' + e.key,
  pod: [e.owner.namespace, e.owner.pod].filter(Boolean).join('/'),
  namespace: e.owner.namespace || '',
  node: e.owner.node || '',
  reason: e.reason || '',
  due: e.due || '',
}));

// An address is one row, that of the allocation that decides on it. The others are in its details.
for (const [other, first] of Object.entries(data.same || {})) {
  entries[other].first = entries[first];
  (entries[first].others ||= []).push(entries[other]);
}
const rows = entries.filter((entry) => !entry.first);

// unrecorded are the addresses that pods show and no store has, drawn like entries.
const unrecorded = (report.findings || []).filter((finding) => finding.kind === 'unrecorded').map((finding) => ({
  e: { ...finding, owner: {} },
  state: stateIndex.get('x'),
  order: addressKey(finding.ip),
  pod: finding.claims.map((claim) => claim.namespace + '/' + claim.pod).join(', '),
  node: finding.claims.map((claim) => claim.node).filter(Boolean).join(', '),
  reason: 'no store has it',
}));

// hidden are the characters that control, reorder or take up no room.
const hidden = /[^\p{L}\p{M}\p{N}\p{P}\p{S} ]|\p{Default_Ignorable_Code_Point}/gu;

// shown returns a text in one line, with escapes as ip-reaper prints them.
function shown(text, limit = 4096) {
  const all = String(text);
  const line = all.length > limit ? all.slice(0, limit) + '…' : all;
  return line.replace(hidden, (c) => {
    if (c === '\n') return '\\n';
    if (c === '\t') return '\\t';
    const code = c.codePointAt(0).toString(16);
    return code.length > 4 ? '\\U' + code.padStart(8, '0') : code.length > 2 ? '\\u' + code.padStart(4, '0') : '\\x' + code.padStart(2, '0');
  });
}

// el makes an element. Children that are texts become text nodes.
function el(name, attributes = {}, ...children) {
  const node = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) {
    if (key.startsWith('on')) node.addEventListener(key.slice(2), value);
    else if (value !== undefined && value !== false) node.setAttribute(key, value === true ? '' : shown(value));
  }
  for (const child of children.flat(Infinity)) {
    if (child !== undefined && child !== '') node.append(child instanceof Node ? child : shown(child));
  }
  return node;
}

// commandOf returns a command, whose lines break between words. One click selects all of it.
function commandOf(line) {
  return el('code', { class: 'command' }, line.split(' ').map((word, at) => [at > 0 ? ' ' : '', el('span', {}, word)]));
}

// number writes a number with commas, and a very large one by its power of ten.
function number(n) {
  if (n === null || n === undefined) return 'unknown';
  if (n < 1e15) return n.toLocaleString('en-US');
  const [digits, power] = n.toExponential(1).split('e+');
  return '≈ ' + digits + ' × 10' + power.replace(/\d/g, (d) => '⁰¹²³⁴⁵⁶⁷⁸⁹'[d]);
}

// many writes a number with its noun.
function many(n, one, several = one + 's') {
  return number(n) + ' ' + (n === 1 ? one : several);
}

// clock writes a time in UTC.
function clock(time) {
  return time ? time.slice(0, 19).replace('T', ' ') + ' UTC' : '';
}

// distance says how far a time is from the report's, such as "in 15 min" or "3 h ago".
function distance(time) {
  const seconds = Math.round((Date.parse(time) - Date.parse(asOf)) / 1000);
  const ago = Math.abs(seconds);
  const text = ago < 90 ? ago + ' s' : ago < 5400 ? Math.round(ago / 60) + ' min'
    : ago < 172800 ? Math.round(ago / 3600) + ' h' : Math.round(ago / 86400) + ' d';
  return seconds > 0 ? 'in ' + text : text + ' ago';
}

// timed adds to each time in a text how far it is from the report's, if it is more than a minute.
function timed(text) {
  return text && text.replace(/\d{4}-\d\d-\d\dT[\d:]{8}Z/g, (at) => (Math.abs(Date.parse(at) - Date.parse(asOf)) >= 60000 ? `${at} (${distance(at)})` : at));
}

// plainly says what the report comes to, for those who do not know this program; nothing if that is
// not known.
function plainly() {
  const { leaked, run, backends = [], result = {} } = report;
  const assigned = rows.filter(({ e }) => e.ip).length;
  if (!leaked || assigned === 0) return '';
  const can = (result.refused || []).length > 0 ? 'could be given back now, but the plan was refused' : 'can be given back now';
  const unlisted = backends.filter((backend) => backend.status === 'failed').map((backend) => backend.name);
  return [`Of ${many(assigned, 'assigned address', 'assigned addresses')}${run.selection ? ' that were selected' : ''}, pods left ${number(leaked.total)} behind, as far as Kubernetes knows`,
    !run.dryRun || leaked.released > 0 ? `this run gave back ${number(leaked.released)}` : '',
    leaked.due > 0 ? `${number(leaked.due)} ${can}` : '',
    leaked.undecided > 0 ? `of ${number(leaked.undecided)} others that is not known` : '',
    unlisted.length > 0 ? `nothing is known of ${unlisted.join(', ')}` : '',
  ].filter(Boolean).join('; ') + '. No address in use is touched.';
}

// addressKey returns a text that sorts as the address, or nothing for no address.
function addressKey(ip) {
  const key = digits(ip || '');
  return /^(4[0-9a-f]{8}|6[0-9a-f]{32})$/.test(key) ? key : '';
}

// digits returns the family of an address and its hexadecimal digits.
function digits(ip) {
  if (!ip.includes(':')) {
    const parts = ip.split('.').map(Number);
    return '4' + parts.map((part) => part.toString(16).padStart(2, '0')).join('');
  }
  let text = ip.split('%')[0];
  const dotted = text.lastIndexOf(':');
  if (text.includes('.')) {
    const [a, b, c, d] = text.slice(dotted + 1).split('.').map(Number);
    text = text.slice(0, dotted + 1) + (a * 256 + b).toString(16) + ':' + (c * 256 + d).toString(16);
  }
  const [head, tail] = text.split('::').map((half) => half.split(':').filter(Boolean));
  const zeros = tail ? Array(Math.max(0, 8 - head.length - tail.length)).fill('0') : [];
  return '6' + [...head, ...zeros, ...(tail || [])].map((part) => part.padStart(4, '0')).join('');
}

// rangeOf returns the first address of a prefix and the number of its addresses.
function rangeOf(prefix) {
  const [ip, bits] = prefix.split('/');
  const key = addressKey(ip);
  const hostBits = (key[0] === '4' ? 32 : 128) - Number(bits);
  if (!key || !(hostBits >= 0 && hostBits <= 128)) return null;
  const base = BigInt('0x' + key.slice(1)) >> BigInt(hostBits) << BigInt(hostBits);
  return { family: key[0], base, size: hostBits > 52 ? Infinity : 2 ** hostBits };
}

// addressAt returns the address at an offset of a range.
function addressAt(range, offset) {
  const value = range.base + BigInt(offset);
  if (range.family === '4') return [24n, 16n, 8n, 0n].map((shift) => String(value >> shift & 255n)).join('.');
  const parts = value.toString(16).padStart(32, '0').match(/.{4}/g).map((part) => part.replace(/^0+(?=.)/, ''));
  const zeros = parts.join(':').match(/\b0(:0)+\b/g);
  if (!zeros) return parts.join(':');
  const longest = zeros.reduce((a, b) => (b.length > a.length ? b : a));
  return parts.join(':').replace(longest, '::').replace(/:{3,}/, '::');
}

// countStates returns how many of the entries have each state.
function countStates(list) {
  const counts = STATES.map(() => 0);
  for (const entry of list) counts[entry.state]++;
  return counts;
}
