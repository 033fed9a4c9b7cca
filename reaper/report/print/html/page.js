
// fillTop fills the bottom line and what identifies the run.
function fillTop(top) {
  const { run, journal } = report;
  const mode = run.dryRun ? run.remember ? 'dry run that saves the ledger' : 'dry run' : isRestore ? 'restore' : 'run';
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
    (run.caveats || []).map((text) => el('p', { class: 'error' }, text)),
    el('h1', {}, lead),
    why.length > 0 ? el('p', { class: 'why' }, why.join(' ')) : '',
    result.error ? el('p', { class: 'error' }, `Exit code ${result.exitCode}: ${result.error}`) : '',
    states(),
    el('dl', { class: 'facts' }, facts.map(([name, text]) => el('div', {}, el('dt', {}, name), el('dd', {}, text)))));
}

// states returns a button for each state: it filters the table.
function states() {
  const counts = countStates(entries);
  const buttons = STATES.flatMap((state, index) => counts[index] === 0 ? [] : [el('li', {},
    el('button', { type: 'button', class: 'tally', title: state.about, onclick: () => choose(state.label) },
      swatch(index, 16), el('b', {}, number(counts[index])), ' ', state.label))]);
  return el('ul', { class: 'tallies', 'aria-label': 'Entries by state; a button filters the table' }, buttons);
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
    el('ul', {}, warnings.map((text) => el('li', {}, text))));
}

// fillNext fills what to do next, and the commands to type.
function fillNext(section) {
  const next = data.next || [];
  if (next.length === 0) return;
  section.hidden = false;
  section.append(el('h2', { id: 'next-title' }, 'What to do next'),
    el('dl', {}, next.map(({ says, command }) => [el('dt', {}, says), el('dd', {}, commandOf(command))])));
}

// fillReleased fills what the run did: its conclusion, and the entries that it wrote.
function fillReleased(section) {
  const written = entries.filter(({ e }) => !['kept', 'planned', 'refused', 'notBegun'].includes(e.outcome));
  if (isRestore || (written.length === 0 && report.run.dryRun)) return;
  section.hidden = false;
  section.append(el('h2', { id: 'released-title' }, 'What this run did'), el('p', {}, data.conclusion),
    written.length > 0 ? newTable(written, 'Entries that the run wrote, or tried to', 8).node : '');
}

function fillEntries(section) {
  table = newTable(entries, 'All entries', narrow.matches ? 20 : 50, true);
  section.append(el('h2', { id: 'entries-title' }, 'Entries'), table.node);
}

// fillBackends fills a table of the backends, and below it those of which there is nothing to
// count. A column without a figure is left out.
function fillBackends(section) {
  const all = report.backends || [];
  if (all.length === 0) return;
  section.hidden = false;
  const idle = all.filter((backend) => !(backend.entries > 0) && ['ok', 'skipped'].includes(backend.status));
  const backends = all.filter((backend) => !idle.includes(backend));
  const figures = [['Allocations', 'entries'], ['In use', 'inUse'], ['Held', 'held'], ['Suspected', 'suspected'], ['Planned', 'planned'],
    ['Released', 'released'], ['Changed', 'changed'], ['Being deleted', 'deleting'], ['Not begun', 'notBegun'], ['Failed', 'failed']].filter(([, field]) => backends.some((backend) => backend[field] > 0));
  const rows = backends.map((backend) => el('tr', {}, el('th', { scope: 'row' }, backend.name),
    el('td', {}, el('span', { class: 'tag ' + (/^[a-z]+$/.test(backend.status) ? backend.status : '') }, backend.status)),
    figures.map(([, field]) => el('td', { class: 'n' }, backend[field] === undefined ? '–' : number(backend[field]))),
    el('td', {}, backend.message || '')));
  const names = ['Backend', 'Status', ...figures.map(([name]) => name), backends.some((backend) => backend.message) ? 'Message' : ''];
  section.append(el('h2', { id: 'backends-title' }, 'Backends'), backends.length === 0 ? '' : el('div', { class: 'scroll', tabindex: '0', role: 'region', 'aria-label': 'Table of backends' },
    el('table', { class: 'plain' }, el('thead', {}, el('tr', {}, names.map((name, i) => el('th', { scope: 'col', class: i > 1 && i < names.length - 1 ? 'n' : '' }, name)))),
      el('tbody', {}, rows))),
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

for (const [id, fill] of [['top', fillTop], ['refused', fillRefused], ['warnings', fillWarnings], ['next', fillNext], ['pools', fillPools],
  ['released', fillReleased], ['entries', fillEntries], ['backends', fillBackends]]) {
  fill(document.getElementById(id));
}
document.title = shown(`ip-reaper ${report.run.id}: ${data.bottomLine}`, 200);
document.getElementById('foot').append(
  'This file holds the whole report and loads nothing. Times are in UTC; relative times count from the run.');
document.documentElement.dataset.ready = 'yes';
