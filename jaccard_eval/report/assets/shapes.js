// Shapes of boxes, as features/images/shapes.py writes them: the path of one, "" of what is a box or is drawn as one.
const UNSEEN = 65535;
const shapePath = place => {
  const { shaped, px, py, image, width, height } = store, { form, points: k, lines } = about.shapes;
  if (!shaped?.[place]) return "";
  const shape = (store.shapeAt ??= startsOf(shaped))[place], at = shape * k;
  if (form === "mask") return maskPath(shape, px[at], py[at], px[at + 1], py[at + 1]);
  const points = Array.from({ length: k }, (_, i) => px[at + i] !== UNSEEN && pointOf(place, px[at + i], py[at + i]));
  if (!lines) return `M${points.join("L")}z`;
  const r = Math.max(width[image[place]], height[image[place]]) / 220;
  return lines.filter(ends => ends.every(end => points[end])).map(([a, b]) => `M${points[a]}L${points[b]}`).join("")
    + points.filter(Boolean).map(([x, y]) => `M${x - r} ${y}a${r} ${r} 0 1 0 ${2 * r} 0a${r} ${r} 0 1 0 ${-2 * r} 0z`).join("");
};
// A mask is known at the middles of cells. Its outline goes around those of it, clockwise, from the middle of a side to
// that of the next one, so that stairs become slopes.
const cellsOf = (width, height) => {
  const side = Math.max(Math.ceil(Math.max(width, height) / about.shapes.cells), 1);
  return [side, Math.ceil(width / side), Math.ceil(height / side)];
};
const maskPath = (shape, left, top, width, height) => {
  const { px, py, cells } = store, [side, across, down] = cellsOf(width, height), sides = new Map();
  const first = (store.cellsAt ??= startsOf(Array.from({ length: px.length / 2 }, (_, i) => {
    const [, wide, tall] = cellsOf(px[2 * i + 1], py[2 * i + 1]);
    return Math.ceil(wide * tall / 8);
  })))[shape];
  const isIn = (x, y) => x >= 0 && y >= 0 && x < across && y < down && cells[first + (y * across + x >> 3)] >> (y * across + x & 7) & 1;
  const go = (x, y, dx, dy) => {
    const from = `${[x, y]}`;
    sides.set(from, [...(sides.get(from) ?? []), [x, y, dx, dy]]);
  };
  for (let y = 0; y < down; y++) for (let x = 0; x < across; x++) if (isIn(x, y)) {
    if (!isIn(x, y - 1)) go(x, y, 1, 0);
    if (!isIn(x + 1, y)) go(x + 1, y, 0, 1);
    if (!isIn(x, y + 1)) go(x + 1, y + 1, -1, 0);
    if (!isIn(x - 1, y)) go(x, y + 1, 0, -1);
  }
  let path = "";
  for (const [start, ways] of sides) while (ways.length) {
    const ring = [];
    let from = start;
    do {
      const [x, y, dx, dy] = sides.get(from).pop();
      ring.push([left + Math.min((x + dx / 2) * side, width), top + Math.min((y + dy / 2) * side, height)]);
      from = `${[x + dx, y + dy]}`;
    } while (from !== start);
    path += `M${ring.join("L")}z`;
  }
  return path;
};
