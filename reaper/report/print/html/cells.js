
// A cell has a colour and a pattern, so that it can be told from the others without
// colours. Tiles are drawn once for each state and size.
let tiles = new Map();

// colour returns a colour of the style sheet: the scheme may be light or dark.
function colour(name) {
  return getComputedStyle(document.documentElement).getPropertyValue('--' + name).trim();
}

// tile returns the picture of a state: size is in pixels of the device. A large one has a
// gap to its neighbours.
function tile(state, size, gap = size >= 8 ? Math.max(1, Math.round(size / 12)) : 0) {
  const id = [state, size, gap].join();
  if (!tiles.has(id)) tiles.set(id, newTile(STATES[state].name, size, gap));
  return tiles.get(id);
}

function newTile(name, size, gap) {
  const canvas = document.createElement('canvas');
  canvas.width = canvas.height = size;
  const ctx = canvas.getContext('2d');
  const inner = size - gap;
  ctx.fillStyle = colour('s-' + name);
  ctx.fillRect(0, 0, inner, inner);
  ctx.beginPath();
  ctx.rect(0, 0, inner, inner);
  ctx.clip();
  ctx.fillStyle = ctx.strokeStyle = colour('s-' + name + '-ink');
  if (patterns[name]) patterns[name](ctx, inner, gap);
  return canvas;
}

// patterns draw on a square of n pixels in the ink of the state.
const patterns = {
  due(ctx, n) { // stripes that rise
    ctx.lineWidth = Math.max(1, n / 6);
    ctx.beginPath();
    for (const at of n < 8 ? [0] : [-n / 2, 0, n / 2]) {
      ctx.moveTo(at - 1, n + 1);
      ctx.lineTo(at + n + 1, -1);
    }
    ctx.stroke();
  },
  waiting(ctx, n) { // a dot
    ctx.beginPath();
    ctx.arc(n / 2, n / 2, Math.max(1, n / 5), 0, 2 * Math.PI);
    ctx.fill();
  },
  held(ctx, n) { // lines across
    const line = Math.max(1, Math.round(n / 6));
    for (const part of n < 8 ? [0.5] : [0.25, 0.65]) ctx.fillRect(0, Math.round(n * part), n, line);
  },
  protected(ctx, n) { // lines down
    const line = Math.max(1, Math.round(n / 6));
    for (const part of n < 8 ? [0.5] : [0.25, 0.65]) ctx.fillRect(Math.round(n * part), 0, line, n);
  },
  released(ctx, n) { // a frame
    const edge = Math.max(1, Math.round(n / 5));
    ctx.fillRect(edge, edge, n - 2 * edge, n - 2 * edge);
  },
  failed(ctx, n) { // a cross
    ctx.lineWidth = Math.max(1, n / 6);
    ctx.beginPath();
    ctx.moveTo(0, 0);
    ctx.lineTo(n, n);
    ctx.moveTo(n, 0);
    ctx.lineTo(0, n);
    ctx.stroke();
  },
  other(ctx, n) { // a checkerboard
    const half = Math.round(n / 2);
    ctx.fillRect(0, 0, half, half);
    ctx.fillRect(half, half, n - half, n - half);
  },
  free(ctx, n, gap) { // an edge, where the cells have gaps
    if (gap === 0 && n >= 8) return;
    ctx.lineWidth = n < 8 ? 0.5 : 1;
    ctx.strokeRect(0.5, 0.5, n - 1, n - 1);
  },
};

// pixels sizes a canvas for the screen and returns the pixels of the device for one of
// the page.
function pixels(canvas, width, height) {
  const ratio = Math.max(1, Math.round(window.devicePixelRatio || 1));
  canvas.width = width * ratio;
  canvas.height = height * ratio;
  canvas.style.width = width + 'px';
  canvas.style.height = height + 'px';
  return ratio;
}

// redraws are called again if the colours change.
const redraws = new Set();

function drawn(draw) {
  redraws.add(draw);
  draw();
}

for (const query of ['(prefers-color-scheme: dark)', 'print']) {
  window.matchMedia(query).addEventListener('change', () => {
    tiles = new Map();
    redraws.forEach((draw) => draw());
  });
}

// swatch returns a small cell for a legend. The text beside it says the state. It is drawn
// again as long as it is in the page.
function swatch(state, size = 13) {
  const canvas = el('canvas', { class: 'swatch', 'aria-hidden': 'true' });
  const draw = () => {
    const ratio = pixels(canvas, size, size);
    canvas.getContext('2d').drawImage(tile(state, size * ratio), 0, 0);
  };
  canvas.redraw = draw;
  draw();
  return canvas;
}

redraws.add(() => document.querySelectorAll('canvas.swatch, canvas.bar').forEach((canvas) => canvas.redraw()));

// bar returns a picture of parts: pairs of a state and a count.
function bar(parts, total, width) {
  const canvas = el('canvas', { class: 'bar', 'aria-hidden': 'true' });
  canvas.redraw = () => {
    const height = 10;
    const ratio = pixels(canvas, width, height);
    const ctx = canvas.getContext('2d');
    let at = 0;
    for (const [state, count] of parts) {
      if (count === 0) continue;
      const size = Math.max(2, Math.round(width * count / total)) * ratio;
      ctx.fillStyle = ctx.createPattern(tile(state, height * ratio, 0), 'repeat');
      ctx.fillRect(at, 0, size, height * ratio);
      at += size;
    }
  };
  canvas.redraw();
  return canvas;
}
