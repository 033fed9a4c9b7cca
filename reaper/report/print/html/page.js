
// fillTop fills the bottom line and what identifies the run.
function fillTop(top) {
  const { run, journal } = report;
  const mode = !run.cluster && !run.node ? 'files' : run.dryRun ? run.remember ? 'dry run that saves the ledger' : 'dry run' : isRestore ? 'restore' : 'run';
  const seconds = (Date.parse(run.finishedAt) - Date.parse(run.startedAt)) / 1000;
  const [lead, ...why] = data.bottomLine.split(/ (?=\()/);
  const policy = run.policy || {};
  const terms = policy.gracePeriod ? `grace period ${policy.gracePeriod}, min age ${policy.minAge}` : '';
  const facts = [
    ['Cluster', run.cluster], ['Context', run.context], ['State namespace', run.stateNamespace],
    ['Stores', Object.entries(run.stores || {}).map(([backend, where]) => `${backend} in ${where}`).join(', ')],
    ['Policy', isRestore ? '' : [policy.installed ? `installed, ${policy.installed}` : policy.file || 'defaults', terms].filter(Boolean).join(': ')],
    ['Time', clock(run.startedAt) + (seconds > 0 ? `, took ${seconds < 10 ? seconds.toFixed(1) : Math.round(seconds)} s` : '')],
    ['Run', `${run.id}, ${run.version}`], ['Undoes run', journal && journal.id],
    ['Memory', isRestore || run.memory || !run.cluster ? '' : 'none: the next run restarts every grace period'],
  ].filter(([, text]) => text);
  const result = report.result || {};
  top.append(
    el('p', { class: 'product' }, 'ip-reaper ', el('span', { class: 'tag' }, mode)),
    ...(run.caveats || []).map((text) => el('p', { class: 'error' }, timed(text))),
    el('h1', {}, lead),
    why.length > 0 ? el('p', { class: 'why' }, why.join(' ')) : '',
    el('p', { class: 'plainly' }, plainly()),
    result.error ? el('p', { class: 'error' }, `Exit code ${result.exitCode}: ${result.error}`) : '',
    states(),
    el('dl', { class: 'facts' }, facts.map(([name, text]) => el('div', {}, el('dt', {}, name), el('dd', {}, text)))));
}

// states returns a button for each status, with the number of its addresses: it filters the table.
function states() {
  const counts = countStates(rows.filter(({ e }) => e.ip || isRestore));
  const buttons = STATES.flatMap((state, index) => {
    const count = counts.reduce((sum, n, i) => statusOf(i) === state.label ? sum + n : sum, 0);
    return count === 0 ? [] : [el('li', {},
      el('button', { type: 'button', class: 'tally', title: state.about, onclick: () => choose(state.label) },
        swatch(index, 16), el('b', {}, number(count)), ' ', state.label))];
  });
  return el('ul', { class: 'tallies', 'aria-label': 'Addresses by state; a button filters the table' }, buttons);
}

let table;

function choose(label) {
  table.choose('State', label);
  const section = document.getElementById('entries');
  section.scrollIntoView();
  section.focus({ preventScroll: true });
}

// fillRefused fills the limits that refused the plan.
function fillRefused(section) {
  const refused = (report.result && report.result.refused) || [];
  if (refused.length === 0) return;
  section.hidden = false;
  section.append(
    el('h2', { id: 'refused-title' }, `Refused by ${many(refused.length, 'limit')}: nothing in the plan ${report.run.dryRun ? 'would be' : 'was'} released`),
    el('ul', {}, refused.map((one) => el('li', {}, el('code', {}, one.limit), ' ', one.message, el('p', { class: 'remedy' }, one.remedy)))));
}

function fillWarnings(section) {
  const warnings = report.warnings || [];
  if (warnings.length === 0) return;
  section.hidden = false;
  section.append(el('h2', { id: 'warnings-title' }, many(warnings.length, 'warning')),
    el('ul', {}, warnings.map((text) => el('li', {}, timed(text)))));
}

// fillNext fills what to do next, and the commands to type.
function fillNext(section) {
  const next = data.next || [];
  if (next.length === 0) return;
  section.hidden = false;
  section.append(el('h2', { id: 'next-title' }, 'What to do next'),
    el('dl', {}, next.map(({ says, command }) => [el('dt', {}, says), el('dd', {}, command ? commandOf(command) : '')])));
}

// This many nodes and namespaces are named.
const LEAKS_NAMED = 8;

// fillLeaks fills the tables of who leaks most.
function fillLeaks(section) {
  const tops = (data.top || []).filter((top) => top.rows.length > 0);
  if (tops.length === 0) return;
  section.hidden = false;
  section.append(el('h2', { id: 'leaks-title' }, 'Leaked addresses that the stores still have'), el('div', { class: 'tops' }, tops.map(newTop)));
}

function newTop({ by, rows: all }) {
  const figures = ['leaked', 'due', 'waiting', 'held'];
  const left = all.slice(LEAKS_NAMED);
  const head = [by === 'nodes' ? 'Node' : 'Namespace', ...figures.map((name) => name[0].toUpperCase() + name.slice(1))];
  return el('div', { class: 'scroll', tabindex: '0', role: 'region', 'aria-label': 'Leaks by ' + by },
    el('table', { class: 'plain' }, el('thead', {}, el('tr', {}, head.map((name, i) => el('th', { scope: 'col', class: i > 0 && 'n' }, name)))),
      el('tbody', {}, all.slice(0, LEAKS_NAMED).map((one) => el('tr', {}, el('th', { scope: 'row' }, one.name), figures.map((figure) => el('td', { class: 'n' }, number(one[figure]))))))),
    left.length > 0 ? el('p', { class: 'note' }, `… and ${number(left.length)} more with ${number(left.reduce((sum, one) => sum + one.leaked, 0))}`) : '');
}

// fillReleased fills what the run did: its conclusion, and the entries that it wrote.
function fillReleased(section) {
  const written = rows.filter((row) => [row, ...row.others || []].some(({ e }) => !['kept', 'planned', 'refused', 'notBegun'].includes(e.outcome)));
  if (isRestore || (written.length === 0 && report.run.dryRun)) return;
  section.hidden = false;
  section.append(el('h2', { id: 'released-title' }, 'What this run did'), el('p', {}, data.conclusion),
    written.length > 0 ? newTable(written, 'Entries that the run wrote, or tried to', 8).node : '');
}

function fillEntries(section) {
  table = newTable(rows, 'All entries', narrow.matches ? 20 : 50, true);
  section.append(el('h2', { id: 'entries-title' }, 'Entries'), table.node);
}

// fillBackends fills a table of the backends, and below it those that have nothing.
function fillBackends(section) {
  const all = report.backends || [];
  if (all.length === 0) return;
  section.hidden = false;
  const idle = all.filter((backend) => !(backend.entries > 0) && ['ok', 'skipped'].includes(backend.status));
  const backends = all.filter((backend) => !idle.includes(backend));
  const body = backends.map((backend) => el('tr', {}, el('th', { scope: 'row' }, backend.name),
    el('td', {}, el('span', { class: 'tag ' + (/^[a-z]+$/.test(backend.status) ? backend.status : '') }, backend.status)),
    el('td', { class: 'n' }, backend.entries === undefined ? '–' : number(backend.entries)),
    el('td', {}, backend.message || '')));
  const names = ['Backend', 'Status', 'Allocations', backends.some((backend) => backend.message) ? 'Message' : ''];
  section.append(el('h2', { id: 'backends-title' }, 'Backends'), backends.length === 0 ? '' : el('div', { class: 'scroll', tabindex: '0', role: 'region', 'aria-label': 'Table of backends' },
    el('table', { class: 'plain' }, el('thead', {}, el('tr', {}, names.map((name, i) => el('th', { scope: 'col', class: i === 2 ? 'n' : '' }, name)))),
      el('tbody', {}, body))),
  el('ul', { class: 'note' }, idle.map(({ name, status, message }) => el('li', {}, el('b', {}, name), `: ${status}, ${message || 'no entries'}`))));
}

// On a narrow screen, the entries come before the maps.
function arrange() {
  const [pools, released, entries] = ['pools', 'released', 'entries'].map((id) => document.getElementById(id));
  if (narrow.matches) entries.after(pools);
  else released.before(pools);
}

narrow.addEventListener('change', arrange);
arrange();

for (const [id, fill] of [['top', fillTop], ['refused', fillRefused], ['warnings', fillWarnings], ['next', fillNext], ['leaks', fillLeaks], ['pools', fillPools],
  ['released', fillReleased], ['entries', fillEntries], ['backends', fillBackends]]) {
  fill(document.getElementById(id));
}
document.title = shown(`ip-reaper ${report.run.id}: ${data.bottomLine}`, 200);
document.getElementById('foot').append(
  'This file holds the whole report and loads nothing. Times are in UTC; relative times count from the run.');
document.documentElement.dataset.ready = 'yes';
