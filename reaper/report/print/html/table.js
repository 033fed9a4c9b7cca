
// columns are the columns of the table. A sort by one of them goes on by the address.
const columns = [
  { name: 'Address', by: (x) => x.order, cell: (x) => el('code', {}, x.e.ip || 'key ' + x.e.key) },
  { name: 'State', by: (x) => String.fromCharCode(65 + x.state), cell: (x) => el('span', { class: 'state' }, swatch(x.state), STATES[x.state].label) },
  ...isRestore ? [] : [{ name: 'Reason', by: (x) => x.reason, cell: (x) => x.reason }],
  { name: 'Pod', by: (x) => x.pod, cell: (x) => el('span', { class: 'long', title: shown(x.pod, 256) }, shown(x.pod, 256)) },
  { name: 'Node', by: (x) => x.node, cell: (x) => el('span', { class: 'long', title: shown(x.node, 256) }, shown(x.node, 256)) },
  { name: 'Pool', by: (x) => x.e.pool, cell: (x) => el('span', { class: 'long', title: shown(x.e.pool, 256) }, shown(x.e.pool, 256)) },
  ...isRestore ? [] : [{ name: 'Due', by: (x) => x.due || '~', cell: (x) => x.due && el('span', { title: clock(x.due) }, distance(x.due)) }],
];

// filters are the choices above the table.
const filters = [
  { name: 'State', of: (x) => statusOf(x.state) },
  { name: 'Backend', of: (x) => [x, ...x.others || []].map(({ e }) => e.backend).join(', ') },
  { name: 'Pool', of: (x) => x.e.pool },
  { name: 'Namespace', of: (x) => x.namespace },
  { name: 'Node', of: (x) => x.node },
  { name: 'Reason', of: (x) => x.reason },
];

// words returns the text in which the search looks.
function words(entry) {
  if (entry.words === undefined) {
    const { e } = entry;
    const said = (e.evidence || []).map((one) => one.source + ' ' + one.says);
    entry.words = [e.ip, e.key, entry.pod, entry.node, e.owner.sandbox, e.owner.interface, e.backend, e.pool, e.reason,
      ...(entry.others || []).map((other) => other.e.backend + ' ' + other.e.pool),
      e.verdict, e.outcome, e.note, e.error, ...said].filter(Boolean).join('\n').toLowerCase();
  }
  return entry.words;
}

// newTable returns a table of entries: node is its element, and choose sets the filter of
// that name. Only one page of rows is in the document.
function newTable(list, caption, pageOf, withFilters) {
  const chosen = new Map();
  let search = '';
  let sort = { column: columns[1], down: false };
  let found = list;
  let at = 0;

  const body = el('tbody');
  const heads = columns.map((column) => {
    const button = el('button', { type: 'button', onclick: () => {
      sort = { column, down: sort.column === column && !sort.down };
      update();
    } }, column.name);
    return el('th', { scope: 'col' }, button);
  });
  const count = el('p', { class: 'count', role: 'status' });
  const before = el('button', { type: 'button', onclick: () => turn(-pageOf) }, 'Previous');
  const after = el('button', { type: 'button', onclick: () => turn(pageOf) }, 'Next');
  const reset = el('button', { type: 'button', onclick: clear }, 'Clear');
  const input = el('input', { type: 'search', id: 'search', autocomplete: 'off', spellcheck: 'false', placeholder: 'address, pod, node, evidence …', oninput: () => {
    search = input.value.toLowerCase();
    update();
  } });
  const selects = new Map(withFilters ? filters.map((filter) => [filter.name, newSelect(filter)]) : []);

  function newSelect(filter) {
    const counts = new Map();
    for (const entry of list) counts.set(filter.of(entry), (counts.get(filter.of(entry)) || 0) + 1);
    counts.delete('');
    const select = el('select', { id: 'filter-' + filter.name, onchange: () => {
      chosen.set(filter, select.value);
      update();
    } }, el('option', { value: '' }, 'any'));
    const sorted = [...counts].sort(([a, n], [b, m]) => m - n || (a < b ? -1 : 1));
    for (const [value, n] of sorted) {
      const option = el('option', {}, `${shown(value, 120)} (${number(n)})`);
      option.value = value;
      select.append(option);
    }
    return select;
  }

  function clear() {
    chosen.clear();
    selects.forEach((select) => { select.value = ''; });
    input.value = search = '';
    update();
  }

  function turn(by) {
    at += by;
    fill();
    node.querySelector('table').scrollIntoView({ block: 'nearest' });
  }

  // update filters and sorts anew.
  function update() {
    const wanted = [...chosen].filter(([, value]) => value !== '');
    const terms = search.split(/\s+/).filter(Boolean);
    found = list.filter((entry) => wanted.every(([filter, value]) => filter.of(entry) === value)
      && terms.every((term) => words(entry).includes(term)));
    const { by } = sort.column;
    const sign = sort.down ? -1 : 1;
    found.sort((a, b) => {
      const [x, y] = [by(a), by(b)];
      return x === y ? byOrder(a, b) : x < y ? -sign : sign;
    });
    heads.forEach((head, i) => {
      if (columns[i] === sort.column) head.setAttribute('aria-sort', sort.down ? 'descending' : 'ascending');
      else head.removeAttribute('aria-sort');
    });
    reset.hidden = wanted.length === 0 && terms.length === 0;
    at = 0;
    fill();
  }

  function fill() {
    const rows = found.slice(at, at + pageOf);
    body.replaceChildren(...rows.map(newRow));
    const part = found.length > pageOf ? `${number(at + 1)}–${number(at + rows.length)} of ${number(found.length)}` : number(found.length);
    count.textContent = found.length === list.length ? many(list.length, 'entry', 'entries') + (found.length > pageOf ? ', ' + part : '')
      : `${part} of ${many(list.length, 'entry', 'entries')}`;
    before.disabled = at === 0;
    after.disabled = at + pageOf >= found.length;
    before.hidden = after.hidden = found.length <= pageOf;
  }

  const controls = withFilters ? el('form', { class: 'controls', role: 'search', 'aria-label': 'Entries', onsubmit: (event) => event.preventDefault() },
    el('label', { class: 'grow' }, 'Search', input),
    filters.map((filter) => selects.get(filter.name).children.length < 3 ? '' : el('label', {}, filter.name, selects.get(filter.name))), reset) : '';
  const node = el('div', { class: 'entries' }, controls,
    el('div', { class: 'scroll', tabindex: '0', role: 'region', 'aria-label': caption },
      el('table', {}, el('caption', {}, caption), el('thead', {}, el('tr', {}, heads)), body)),
    el('div', { class: 'pager' }, count, before, after));
  update();
  return { node, choose(name, value) {
    const filter = filters.find((one) => one.name === name);
    clear();
    selects.get(name).value = value;
    chosen.set(filter, value);
    update();
  } };
}

// newRow returns the row of an entry. Its button opens and closes the details below.
function newRow(entry) {
  const [first, ...rest] = columns.map((column) => column.cell(entry) || '');
  const button = el('button', { type: 'button', class: 'fold', 'aria-expanded': 'false', onclick: toggle }, first);
  const row = el('tr', {}, el('th', { scope: 'row' }, button), rest.map((cell, at) => el('td', { class: 'of-' + columns[at + 1].name.toLowerCase() }, cell)));
  function toggle() {
    const open = button.getAttribute('aria-expanded') === 'false';
    button.setAttribute('aria-expanded', String(open));
    if (open) row.after(el('tr', { class: 'details' }, el('td', { colspan: columns.length }, detailsOf(entry))));
    else row.nextSibling.remove();
  }
  return row;
}

// detailsOf returns all that the report says of an entry.
function detailsOf({ e, state, pod, others = [] }) {
  const facts = [
    ['Address', e.ip], ['State', `${STATES[state].label}: ${STATES[state].about}`],
    ['Reason', e.reason], ['Note', timed(e.note)], ['Error', e.error],
    ['Pod', pod], ['Node', e.owner.node], ['Interface', e.owner.interface], ['Sandbox', e.owner.sandbox],
    ['Stored in', `${e.backend}, pool ${e.pool}, key ${e.key}`],
    ...others.map((other) => ['Also in', `${other.e.backend}, pool ${other.e.pool}, key ${other.e.key}: ${STATES[other.state].label}, ${other.reason}`]),
    ['First seen', e.firstSeen && `${clock(e.firstSeen)} (${distance(e.firstSeen)})`],
    ['Due', e.due && `${clock(e.due)} (${distance(e.due)})`],
  ].filter(([, text]) => text);
  const evidence = (e.evidence || []).map((one) => el('li', {}, el('b', {}, one.source), ' ', timed(one.says)));
  const explain = data.explain && /^[0-9a-f.:]+$/.test(e.ip) ? [el('dt', {}, 'Ask why'), el('dd', {}, commandOf(data.explain.replace('ADDRESS', e.ip)))] : [];
  return el('div', { class: 'about' },
    el('dl', {}, facts.map(([name, text]) => [el('dt', {}, name), el('dd', {}, text)]), explain),
    evidence.length > 0 ? el('div', { class: 'evidence' }, el('h3', {}, 'Evidence'), el('ul', {}, evidence)) : '');
}
