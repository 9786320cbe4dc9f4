// Right: tiles of whole images with the selected boxes, or one tile per box. Only tiles in sight are there.
const GAP = 10, CAPTION = 44, MANY = 12, tiles = new Map();
let items = [], columns = 1, tileWidth = 200, tileHeight = 200, cursor = 0, unread = 0;
const ordered = () => {
  const { marks, all: n } = selection, { m } = store;
  if (isTiled()) {
    const [lost, wrong] = [[], []];
    for (let place = 0; place < marks.length; place++) if (marks[place]) (place < m ? lost : wrong).push(place);
    const most = store.pixels ?? store.score;
    for (const places of store.pixels ? [lost, wrong] : [wrong]) places.sort((a, b) => most[b] - most[a]);
    // The surest or the largest first, and misses between them.
    return Array.from({ length: Math.max(lost.length, wrong.length) }, (_, i) => [wrong[i], lost[i]]).flat().filter(place => place !== undefined);
  }
  const rows = [...n.keys()].filter(row => n[row]);
  const weight = chosen.sort === "worst" ? select({}).wrong : n;
  return chosen.sort === "file" ? rows : rows.sort((a, b) => weight[b] - weight[a]);
};
// The picture of an image, under it its small copy; a file that was turned by its camera stands as its boxes do.
const pictures = (row, isSmall, layer) => {
  const [width, height] = [store.width[row], store.height[row]], sides = { width, height, preserveAspectRatio: "none" };
  const made = [draw("rect", { class: "blank", width, height })], small = head.thumbs ? `thumbs/${String(fileOf(row)).padStart(6, "0")}.jpg` : "", large = pictureOf(row, layer);
  for (const address of isSmall && small ? [small] : [small, large]) {
    if (!address) continue;
    const probe = new Image();
    on(probe, "load", () => {
      const image = draw("image", { ...sides, href: address });
      if (width !== height && probe.naturalWidth === height && probe.naturalHeight === width) image.style.imageOrientation = "none";
      made.at(-1).after(image);
      made.push(image);
    });
    on(probe, "error", () => { if (!unread++) say("Some images cannot be read from here: their boxes are drawn on grey."); });
    probe.src = address;
  }
  return made;
};
// A box twice, over a dark halo, or its own shape.
const outline = (place, look) => {
  const path = shapePath(place), [x, y, width, height] = sideOf(place), sides = path ? { d: path } : { x, y, width, height };
  return ["halo", look].map(kind => draw(path ? "path" : "rect", { class: `b ${kind} ${path ? about.shapes.form : ""}`, ...sides }));
};
const nameOf = place => about.classes[store.label[place]], scoreText = place => store.pixels ? ` ${count(store.pixels[place])} px` : place < store.m || about.maps ? "" : ` ${down(scoreOf(place))}`;
const makeTile = at => {
  const item = items[at], isBox = isTiled(), row = isBox ? store.image[item] : item;
  const shown = isBox ? [item] : places(row).filter(place => selection.marks[place]), [width, height] = [store.width[row], store.height[row]];
  let view = [0, 0, width, height], lines;
  if (isBox) {
    const [x, y, w, h] = sideOf(item), side = Math.max(1.8 * (Math.max(w, h) || width), Math.max(width, height) / 40);
    // Within the image where it is large enough.
    const start = (middle, length, whole) => length > whole ? (whole - length) / 2 : Math.min(Math.max(middle - length / 2, 0), whole - length);
    view = [start(x + w / 2, 1.25 * side, width), start(y + h / 2, side, height), 1.25 * side, side];
    lines = [nameOf(item) + scoreText(item), suspectsAt(item).map(i => listed(opinionOf(i)[0], `${about.suspects[i][0]}: ${review.rows[i][9]}`))[0] ?? (whyOf(item) || lookOf(item))];
  } else {
    const counts = {};
    for (const place of shown) counts[lookOf(place)] = (counts[lookOf(place)] ?? 0) + 1;
    lines = [store.names[row], store.pixels ? boxesIn(selection.all[row]) : Object.entries(counts).map(([state, n]) => `${count(n)} ${state}`).join(", ")];
  }
  const picture = draw("svg", { viewBox: view.join(" "), preserveAspectRatio: "xMidYMid meet", "aria-hidden": "true" }, ...pictures(row, !isBox && tileWidth < 300));
  picture.append(...shown.flatMap(place => outline(place, lookOf(place))));
  if (shown.length > MANY) picture.classList.add("many");
  const tile = el("a", {
    href: addressOf({ ...chosen, img: store.names[row] }), class: "tile", tabindex: "-1", "aria-label": lines.join(", "),
    click: event => {
      if (event.ctrlKey || event.metaKey || event.shiftKey) return;
      event.preventDefault();
      cursor = at;
      openImage(row, isBox ? item : null);
    },
  }, picture, ...lines.map(text => el("p", { text })));
  picture.style.height = `${tileHeight - CAPTION}px`;
  return tile;
};
const layout = () => {
  const room = get("grid").clientWidth - 2 * GAP;
  columns = Math.max(1, Math.round(room / (isTiled() ? 190 : 230)));
  tileWidth = Math.floor((room - GAP * (columns - 1)) / columns);
  tileHeight = Math.round(tileWidth * (isTiled() ? .8 : .72)) + CAPTION;
  get("space").style.height = `${Math.ceil(items.length / columns) * (tileHeight + GAP) + GAP}px`;
};
// Draw what is in sight; anew where the selection or the room is another.
const drawGrid = (isAnew = false) => {
  if (isAnew) {
    layout();
    for (const tile of tiles.values()) tile.remove();
    tiles.clear();
  }
  const grid = get("grid"), line = tileHeight + GAP;
  const from = Math.max(0, Math.floor(grid.scrollTop / line) - 1) * columns, to = Math.min(items.length, (Math.ceil((grid.scrollTop + grid.clientHeight) / line) + 1) * columns);
  for (const [at, tile] of tiles) if (at < from || at >= to) { tile.remove(); tiles.delete(at); }
  for (let at = from; at < to; at++) {
    if (!tiles.has(at)) {
      const tile = makeTile(at), { style } = tile;
      style.left = `${GAP + at % columns * (tileWidth + GAP)}px`;
      style.top = `${GAP + Math.floor(at / columns) * line}px`;
      style.width = `${tileWidth}px`;
      style.height = `${tileHeight}px`;
      tiles.set(at, tile);
      get("space").append(tile);
    }
    tiles.get(at).classList.toggle("on", at === cursor && document.activeElement === grid);
  }
};
// Nothing is left: which filter does it, and what there would be without it.
const drawEmpty = () => {
  if (items.length) return renew(get("empty"));
  const chips = filters(), key = unknown();
  const ways = chips.map(name => [name, sizeOf(survey(asked(without(name, name === "object" ? "pred" : name))))]);
  const text = key ? `There is no ${key.startsWith("s") ? key : "class"} “${chosen[key]}” in this folder.` : chips.length ? "Nothing matches all of these." : "Nothing is missed and nothing is false.";
  renew(get("empty"), el("p", { text }),
    ...ways.filter(([, n]) => n && !key).map(([name, n]) => buttonOf(name, `Without “${words(name)}”: ${boxesIn(n)}`, () => drop(name))),
    chips.length ? buttonOf("all", "Clear all filters", clear) : "");
};
const drop = key => put(without(key, key === "object" ? "pred" : key, "img"));
const clear = () => put(without(...FILTERS, "img"));
const move = by => {
  const grid = get("grid"), line = tileHeight + GAP;
  grid.focus({ preventScroll: true });
  cursor = Math.min(Math.max(cursor + by, 0), Math.max(items.length - 1, 0));
  const top = Math.floor(cursor / columns) * line;
  if (top < grid.scrollTop) grid.scrollTop = top;
  if (top + line + GAP > grid.scrollTop + grid.clientHeight) grid.scrollTop = top + line + GAP - grid.clientHeight;
  drawGrid();
  write(get("live"), tiles.get(cursor)?.getAttribute("aria-label") ?? "");
};
const drawSelection = () => {
  document.body.classList.toggle("picked", filters().length > 0);
  const n = sizeOf(selection), rows = selection.all.filter(Boolean).length;
  for (const id of ["what", "live"]) write(get(id), `${boxesIn(n)} in ${boxesIn(rows, "image", "images")}`);
  renew(get("chips"), ...filters().map(key => buttonOf(key, words(key), () => drop(key), { title: words(key), "aria-label": `Remove filter: ${words(key)}` })));
  for (const button of all("[data-show]")) button.ariaPressed = (chosen.show ?? "images") === button.dataset.show;
  get("sort").value = chosen.sort ?? "most";
  get("sort").hidden = isTiled();
};
