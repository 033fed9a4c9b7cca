
// A map of a larger range than this has cells for the addresses that are held, only.
const MOST_CELLS = 65536;

// layouts say how wide a row is and how large a cell, by the number of cells.
const layouts = narrow.matches ? [
  { upTo: 256, columns: 16, cell: 16 },
  { upTo: 4096, columns: 32, cell: 8 },
  { upTo: Infinity, columns: 64, cell: 4 },
] : [
  { upTo: 64, columns: 16, cell: 16 },
  { upTo: 256, columns: 32, cell: 16 },
  { upTo: 1024, columns: 64, cell: 16 },
  { upTo: 4096, columns: 128, cell: 8 },
  { upTo: Infinity, columns: 256, cell: 4 },
];

// cellsOf returns the cells of a pool: for each the number of its entry, or -1.
function cellsOf(pool, list) {
  const range = rangeOf(pool.range);
  if (!range || range.size > MOST_CELLS) {
    const sorted = list.filter((entry) => entry.e.ip).sort(byOrder);
    return { cells: sorted, sparse: true, address: (at) => sorted[at].e.ip };
  }
  const cells = Array(range.size);
  const inNetworks = new Set((report.networks || []).filter((one) => one.backend === pool.backend && (one.pools || []).includes(pool.name)).map((one) => one.name));
  const lost = unrecorded.filter(({ e }) => e.backend === pool.backend && inNetworks.has(e.network));
  for (const entry of [...list, ...lost]) {
    if (entry.order[0] !== range.family) continue;
    const at = Number(BigInt('0x' + entry.order.slice(1)) - range.base);
    const other = cells[at];
    if (at >= 0 && at < range.size && (!other || STATES[other.state].key === 'r')) cells[at] = entry;
  }
  return { cells, sparse: false, address: (at) => addressAt(range, at) };
}

function byOrder(a, b) {
  return a.order < b.order ? -1 : a.order > b.order ? 1 : 0;
}

// newMap returns the map of a pool: a picture with a cursor, the sentence on the address
// below the cursor, and the details of its entry.
function newMap(pool, list) {
  const { cells, sparse, address } = cellsOf(pool, list);
  const layout = layouts.find((one) => cells.length <= one.upTo);
  const columns = Math.min(layout.columns, cells.length);
  const rows = Math.ceil(cells.length / columns);
  const size = layout.cell;
  const gutter = columns >= 64 && !sparse && !narrow.matches ? 92 : 0;

  const canvas = el('canvas', { 'aria-hidden': 'true' });
  const mark = el('div', { class: 'mark', hidden: true });
  const lens = size < 8 ? newLens(cells, columns, rows) : null;
  const status = el('p', { class: 'status', role: 'status' });
  const details = el('div', { class: 'found' });
  const box = el('div', {
    class: 'map', role: 'application', tabindex: '0', 'aria-roledescription': 'map of addresses',
    'aria-label': `Map of pool ${pool.name}, ${many(cells.length, 'cell')}. Arrow keys move, N and P go to the next and the previous finding, Enter shows the entry.`,
  }, canvas, mark);

  drawn(() => {
    const ratio = pixels(canvas, gutter + columns * size, rows * size);
    const ctx = canvas.getContext('2d');
    for (let at = 0; at < cells.length; at++) {
      const state = cells[at] ? cells[at].state : FREE;
      ctx.drawImage(tile(state, size * ratio), (gutter + at % columns * size) * ratio, Math.floor(at / columns) * size * ratio);
    }
    if (gutter) drawRows(ctx, ratio, { rows, columns, size, address });
  });

  let cursor = 0;
  const sentence = (at) => {
    const entry = cells[at];
    if (!entry) return `${address(at)}: ${STATES[FREE].label}`;
    const owner = [entry.pod, entry.node && 'on ' + entry.node].filter(Boolean).join(' ');
    return `${address(at)}: ${[STATES[entry.state].label, owner, entry.reason].filter(Boolean).join(', ')}`;
  };
  const show = (at) => {
    cursor = at;
    mark.hidden = false;
    mark.style.left = gutter + at % columns * size + 'px';
    mark.style.top = Math.floor(at / columns) * size + 'px';
    mark.style.width = mark.style.height = size + 'px';
    status.textContent = shown(sentence(at));
    if (lens) lens.look(at);
  };
  const open = () => details.replaceChildren(cells[cursor] && cells[cursor].e.outcome ? detailsOf(cells[cursor]) : '');
  const find = (step) => {
    for (let at = cursor + step; at >= 0 && at < cells.length; at += step) {
      if (cells[at] && STATES[cells[at].state].key !== 'i') return at;
    }
    return cursor;
  };
  const keys = {
    ArrowLeft: () => cursor - 1,
    ArrowRight: () => cursor + 1,
    ArrowUp: () => cursor - columns,
    ArrowDown: () => cursor + columns,
    Home: () => 0,
    End: () => cells.length - 1,
    PageUp: () => cursor - 8 * columns,
    PageDown: () => cursor + 8 * columns,
    n: () => find(1),
    p: () => find(-1),
  };
  box.addEventListener('keydown', (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const move = keys[event.key.length === 1 ? event.key.toLowerCase() : event.key];
    if (move) show(Math.min(cells.length - 1, Math.max(0, move())));
    else if (event.key === 'Enter' || event.key === ' ') open();
    else return;
    event.preventDefault();
  });
  const under = (event) => {
    const at = canvas.getBoundingClientRect();
    const column = Math.floor((event.clientX - at.left - gutter) / size);
    const row = Math.floor((event.clientY - at.top) / size);
    const cell = row * columns + column;
    return column >= 0 && column < columns && cell >= 0 && cell < cells.length ? cell : -1;
  };
  canvas.addEventListener('mousemove', (event) => under(event) >= 0 && show(under(event)));
  canvas.addEventListener('click', (event) => {
    if (under(event) < 0) return;
    show(under(event));
    open();
  });
  box.addEventListener('focus', () => show(cursor));
  box.addEventListener('blur', () => { mark.hidden = true; });

  const note = sparse ? el('p', { class: 'note' }, 'The range is too large to draw. The map shows only the addresses that the pool holds.') : '';
  return el('div', { class: 'mapped' }, note, lens ? lens.canvas : '', el('div', { class: 'scroll' }, box), status, details);
}

// drawRows writes the first address of some rows beside the map.
function drawRows(ctx, ratio, { rows, columns, size, address }) {
  const every = Math.ceil(14 / size);
  ctx.fillStyle = colour('muted');
  ctx.font = `${11 * ratio}px ui-monospace, Menlo, Consolas, "DejaVu Sans Mono", monospace`;
  ctx.textBaseline = 'top';
  for (let row = 0; row < rows; row += every < 2 ? 1 : 2 ** Math.ceil(Math.log2(every))) {
    ctx.fillText(address(row * columns), 0, row * size * ratio, 88 * ratio);
  }
}

// newLens returns a picture that enlarges the cells around the cursor.
function newLens(cells, columns, rows) {
  const [across, down, size] = [17, 5, 14];
  const canvas = el('canvas', { class: 'lens', 'aria-hidden': 'true', hidden: true });
  let at = -1;
  const draw = () => {
    const ratio = pixels(canvas, across * size, down * size);
    const ctx = canvas.getContext('2d');
    if (at < 0) return;
    const left = Math.max(0, Math.min(columns - across, at % columns - (across >> 1)));
    const top = Math.max(0, Math.min(rows - down, Math.floor(at / columns) - (down >> 1)));
    for (let y = 0; y < down; y++) {
      for (let x = 0; x < across; x++) {
        const cell = (top + y) * columns + left + x;
        if (cell >= cells.length) continue;
        ctx.drawImage(tile(cells[cell] ? cells[cell].state : FREE, size * ratio), x * size * ratio, y * size * ratio);
        if (cell !== at) continue;
        ctx.strokeStyle = colour('text');
        ctx.lineWidth = 2 * ratio;
        ctx.strokeRect(x * size * ratio, y * size * ratio, (size - 1) * ratio, (size - 1) * ratio);
      }
    }
  };
  drawn(draw);
  return { canvas, look(cell) {
    at = cell;
    canvas.hidden = false;
    draw();
  } };
}
