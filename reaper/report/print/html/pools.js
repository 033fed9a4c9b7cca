
// This many pools of a network are drawn at once.
const POOLS_AT_ONCE = 24;

const byPool = new Map();
for (const entry of entries) {
  const id = entry.e.backend + '\n' + entry.e.pool;
  if (!byPool.has(id)) byPool.set(id, []);
  byPool.get(id).push(entry);
}

// pools have their entries, the fullest first.
const pools = (report.pools || []).map((pool) => ({
  ...pool, list: byPool.get(pool.backend + '\n' + pool.name) || [],
})).sort(byFullness);

// percent says how full a pool or a network is.
function percent({ fullPercent, free }) {
  if (fullPercent !== null) return fullPercent + '%';
  return free === null ? '' : 'closed';
}

// byFullness orders the fullest first, and what is unknown or closed last.
function byFullness(a, b) {
  return (b.fullPercent ?? -1) - (a.fullPercent ?? -1) || (a.name < b.name ? -1 : 1);
}

// fillPools fills the section of networks and pools.
function fillPools(section) {
  if (pools.length === 0) return;
  section.hidden = false;
  section.append(el('h2', { id: 'pools-title' }, 'Address pools'), legend());
  const placed = new Set();
  const empty = pools.filter(isEmpty);
  const networks = [...(report.networks || [])].sort(byFullness);
  let drawn = 0;
  for (const network of networks) {
    const own = pools.filter((pool) => pool.backend === network.backend && (network.pools || []).includes(pool.name));
    own.forEach((pool) => placed.add(pool));
    const full = own.filter((pool) => !isEmpty(pool));
    if (full.length === 0 && !network.used && !network.partial) empty.push(network);
    else section.append(newNetwork(network, full, drawn++ < 4));
  }
  const rest = pools.filter((pool) => !placed.has(pool) && !isEmpty(pool));
  if (rest.length > 0) {
    if (drawn > 0) section.append(el('h3', { class: 'others' }, 'Pools without a network'));
    section.append(newGrid(rest));
  }
  if (empty.length > 0) {
    const names = [...new Set(empty.map((one) => one.name))].sort();
    section.append(el('details', { class: 'network' }, el('summary', {}, `${many(names.length, 'pool or network', 'pools and networks')} without an entry`),
      el('ul', { class: 'names' }, names.map((name) => el('li', {}, el('code', {}, name))))));
  }
}

// isEmpty reports whether there is nothing to draw of a pool.
function isEmpty(pool) {
  return pool.list.length === 0 && (!pool.used || Boolean(report.run.selection));
}

// legend returns the states that the report has.
function legend() {
  const has = countStates(entries);
  has[FREE] = 1;
  has[stateIndex.get('x')] = unrecorded.length;
  const items = STATES.flatMap((state, index) =>
    has[index] === 0 ? [] : [el('li', { title: state.about }, swatch(index), state.label)]);
  return el('ul', { class: 'legend', 'aria-label': 'Legend' }, items);
}

// newNetwork returns a network with its pools folded under it.
function newNetwork(network, own, open) {
  const counts = countStates(own.flatMap((pool) => pool.list));
  const summary = el('summary', {},
    el('span', { class: 'name' }, network.name),
    el('code', {}, network.range === network.name ? '' : network.range),
    el('span', { class: 'tag' }, network.backend),
    network.closed ? el('span', { class: 'tag closed' }, 'closed: ' + network.closed) : '',
    el('span', { class: 'figures' }, usageBar(network, counts, 180), el('strong', {}, percent(network)), usageText(network)));
  const box = el('details', { class: 'network', open }, summary);
  const fill = () => {
    if (!box.open || box.children.length > 1) return;
    if (own.length === 1 && own[0].range === network.range) box.append(newCard(own[0], true));
    else box.append(own.length > 0 ? newGrid(own) : el('p', { class: 'note' }, 'The report has no entries for this network.'));
  };
  box.addEventListener('toggle', fill);
  fill();
  return box;
}

// usageText says how many addresses of a pool or of a network are taken.
function usageText(usage) {
  const free = usage.free === null || usage.free === undefined ? '' : `, ${number(usage.free)} free`;
  const lost = [['blocked', usage.blocked], ['not recorded', usage.unrecorded]].map(([what, n]) => (n > 0 ? `, ${number(n)} ${what}` : '')).join('');
  return `${number(usage.used)} of ${number(usage.capacity)} used${free}${lost}`;
}

// usageBar draws the entries beside what is free.
function usageBar(usage, counts, width) {
  const taken = counts.map((count, state) => [state, count]).filter(([state]) => STATES[state].key !== 'r').reverse();
  const sum = taken.reduce((all, [, count]) => all + count, 0);
  const total = Math.max(sum, Number(usage.capacity || 0), 1);
  return bar([...taken, [FREE, total - sum]], total, width);
}

// newGrid returns the pools side by side, some at once.
function newGrid(list) {
  const grid = el('div', { class: 'grid' });
  let count = 0;
  const more = el('button', { type: 'button', onclick: add });
  function add() {
    const first = count;
    list.slice(count, count + POOLS_AT_ONCE).forEach((pool) => grid.append(newCard(pool)));
    count = Math.min(list.length, count + POOLS_AT_ONCE);
    more.textContent = `Show ${Math.min(POOLS_AT_ONCE, list.length - count)} more of ${many(list.length, 'pool')}`;
    more.hidden = count === list.length;
    if (first > 0) grid.children[first].focus();
  }
  add();
  return el('div', {}, grid, more);
}

// undrawn draw the maps that have not come into view. Paper shows them all.
const undrawn = new Set();
window.addEventListener('beforeprint', () => undrawn.forEach((draw) => draw()));

// newCard returns one pool: its figures and its map, which is drawn once it comes into
// view. If it is all of a network, the network's line has said the rest.
function newCard(pool, alone) {
  const counts = countStates(pool.list);
  const range = rangeOf(pool.range);
  const cells = range && range.size <= MOST_CELLS ? range.size : pool.list.length;
  const card = el('article', { class: cells > 256 ? 'card large' : cells > 64 ? 'card medium' : 'card', tabindex: '-1' },
    alone ? '' : [el('h3', {}, pool.name),
    el('p', { class: 'figures' }, pool.node ? el('span', { class: 'node', title: 'New pods on this node get their addresses from here first.' }, pool.node) : '',
      pool.range === pool.name ? '' : el('code', {}, pool.range), el('span', { class: 'tag' }, pool.backend)),
    el('p', { class: 'figures' }, usageBar(pool, counts, 120), el('strong', {}, percent(pool)), usageText(pool))],
    el('ul', { class: 'legend counts', 'aria-label': 'Addresses by state' }, counts.flatMap((count, state) =>
      count === 0 ? [] : [el('li', {}, swatch(state, 11), `${number(count)} ${STATES[state].label}`)])),
    pool.protectedBy ? el('p', { class: 'note' }, 'Nothing in it is released: ' + pool.protectedBy) : '');
  const place = el('div', { class: 'place' });
  card.append(place);
  if (cells === 0) return card;
  const layout = layouts.find((one) => cells <= one.upTo);
  place.style.minHeight = Math.ceil(cells / layout.columns) * layout.cell + 24 + 'px';
  const draw = () => {
    watch.disconnect();
    undrawn.delete(draw);
    place.replaceChildren(newMap(pool, pool.list));
  };
  const watch = new IntersectionObserver(([seen]) => seen.isIntersecting && draw(), { rootMargin: '600px' });
  watch.observe(card);
  undrawn.add(draw);
  return card;
}
