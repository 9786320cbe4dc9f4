// Images with boxes: tiles of those that are chosen, tabs, and one image enlarged. Where there are columns of all boxes,
// images that the page has no picture of are drawn on a plain canvas, and boxes follow the event "score".
const FIRST = 10, MORE = 24, MOST_DRAWN = 400; // tiles at first, then more at once; detections of an image that are drawn
const STATES = ["missed", "false", "found", "ignored"];
const drawn = (parent, name, attributes) => {
  const made = document.createElementNS(all("svg")[0].namespaceURI, name);
  for (const key in attributes) made.setAttribute(key, attributes[key]);
  parent.append(made);
  return made;
};
for (const gallery of all(".gallery")) {
  const items = all(".shots > li", gallery), shots = gallery.querySelector(".shots"), isLive = about && gallery.contains(chosenBar);
  const { names } = dataOf("gallery"), dialog = gallery.querySelector("dialog"), part = name => dialog.querySelector(".viewer-" + name);
  const toggles = all("[data-shows]", gallery), tabs = all(".tabs button", gallery), tiles = new Map();
  let shown = items, at = 0, limit = FIRST, order = "as listed", tab = null;

  const is = (box, name) => box.classList.contains(name);
  const stateIn = box => STATES.find(state => is(box, state));
  const placeOf = box => store && box.dataset.i !== undefined ? +box.dataset.i : -1;
  const isOn = box => !is(box, "off") && toggles.every(toggle => toggle.checked || !is(box, toggle.dataset.shows));
  const textOf = box => {
    const place = placeOf(box), why = place < 0 ? "" : whyOf(place), state = stateIn(box).replace("false", "false positive");
    const name = place < 0 ? names[box.dataset.c] : about.classes[store.label[place]];
    const text = box.firstElementChild?.textContent ?? listed(name + (is(box, "object") ? "" : ` ${(+box.dataset.s).toFixed(2)}`), state);
    return why ? `${text}: ${why}` : text;
  };
  const rowOf = item => {
    const row = +item.dataset.image;
    return about?.rows ? about.rows.indexOf(row) : row;
  };

  // A box of a tile is made when it has to be shown: a page has the surest of each image that it has a picture of.
  const boxOf = (item, place) => {
    const { m } = store, isObject = place < m, [x, y, width, height] = sideOf(place);
    const kind = isObject ? "missed" : { found: "found", ignored: "ignored" }[KINDS[store.kind[place - m]]] ?? "false";
    const words = listed(isObject && store.ignored[place] ? "ignored" : kind, isObject && "object").replace(",", "");
    const score = isObject ? {} : { "data-s": scoreOf(place).toFixed(4) }, d = shapePath(place);
    return drawn(item.querySelector("svg"), d ? "path" : "rect", { class: d ? `${about.shapes.form} ${words}` : words, "data-c": "", "data-i": place, ...score, ...(d ? { d } : { x, y, width, height }) });
  };
  const tileOf = row => {
    if (tiles.has(row)) return tiles.get(row);
    const { width: { [row]: width }, height: { [row]: height } } = store, item = document.createElement("li");
    const figure = add(item, "figure", ""), shot = add(figure, "div", "", { class: "shot" }), caption = add(figure, "figcaption", "");
    const svg = drawn(shot, "svg", { viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": store.names[row] });
    drawn(svg, "rect", { class: "paper", width, height });
    add(caption, "b", store.names[row]);
    add(caption, "span", "", { class: "counts" });
    const file = store.files[row], tell = text => add(caption, "span", text, { class: "hint" });
    if (file) {
      const picture = drawn(svg, "image", { width, height, preserveAspectRatio: "none", href: about.pictures + file });
      on(picture, "error", () => {
        picture.remove();
        tell("no picture: move the page back next to its images");
      });
    } else if (about.pictures) tell("no file of this image was found");
    item.dataset.image = about.rows ? about.rows[row] : row;
    const boxes = places(row), detections = boxes.filter(place => place >= store.m).sort((a, b) => store.score[a] - store.score[b]);
    for (const place of [...boxes.filter(place => place < store.m), ...detections.slice(-MOST_DRAWN)]) boxOf(item, place);
    tiles.set(row, item);
    opens(item);
    return item;
  };
  const refresh = item => {
    const row = rowOf(item), boxes = new Map(all("[data-i]", item).map(box => [+box.dataset.i, box])), counts = {};
    for (const place of places(row)) {
      const state = stateOf(place), on = selection?.marks[place], box = boxes.get(place) ?? (on ? boxOf(item, place) : null);
      if (state) counts[state] = (counts[state] ?? 0) + 1;
      box?.classList.toggle("off", !state && !on);
      box?.classList.toggle("is-chosen", !!on);
    }
    write(item.querySelector(".counts"), ["missed", "false", "found"].map(state => `${count(counts[state] ?? 0)} ${state}`).join(", "));
  };

  // Of each image, for an order: the F1, the surest false positive, the least overlap of what is found.
  const worth = {
    "lowest F1": row => {
      const n = { missed: 0, false: 0, found: 0 };
      for (const place of places(row)) n[stateOf(place)]++;
      return 2 * n.found / (2 * n.found + n.missed + n.false || 1);
    },
    "surest false": row => -Math.max(0, ...places(row).map(place => stateOf(place) === "false" ? scoreOf(place) : 0)),
    "least overlap": row => Math.min(1, ...places(row).map(place => place >= store.m && stateOf(place) === "found" ? store.iou[place - store.m] / 200 : 1)),
  };
  const more = isLive ? add(gallery, "button", "", { type: "button", class: "no-print", hidden: "" }) : null;
  const rowsShown = () => {
    const key = worth[order], pictured = row => +tiles.has(row) && +!!tiles.get(row).querySelector("image");
    if (!selection && !key) return null;
    const rows = [...store.names.keys()].filter(row => !selection || selection.all[row]);
    const weight = key ? row => [key(row)] : row => [-pictured(row), -selection.wrong[row], -selection.all[row]];
    const keyed = rows.map(row => [weight(row), row]);
    const first = (a, b) => a.reduce((sum, value, i) => sum || value - b[i], 0);
    return keyed.sort((a, b) => first(a[0], b[0])).map(([, row]) => row);
  };
  const showTiles = () => {
    const rows = isLive && store ? rowsShown() : null, list = rows ?? (tab ? tab.dataset.rows.split(" ").map(row => items[row]) : items);
    shown = isLive ? (rows ? rows.slice(0, limit).map(tileOf) : list.slice(0, limit)) : list;
    gallery.classList.toggle("narrowed", !!selection);
    for (const button of tabs) button.ariaPressed = !rows && button === tab;
    if (store && isLive) shown.forEach(refresh);
    // Pictures that are not shown stay for paper.
    const rest = items.filter(item => !shown.includes(item));
    for (const item of shown) item.hidden = false;
    for (const item of rest) item.hidden = true;
    shots.replaceChildren(...shown, ...rest);
    if (!more) return;
    more.hidden = list.length <= limit;
    write(more, `Show ${Math.min(MORE, list.length - limit)} more of ${boxesIn(list.length, "image", "images")}`);
  };
  for (const button of tabs) on(button, "click", () => {
    [tab, order, limit] = [button, "as listed", FIRST];
    if (isNarrowed()) {
      chosen = chosen.score ? { score: chosen.score } : {};
      remember();
    }
    showTiles();
  });
  tab = tabs[0] ?? null;
  if (isLive) {
    on(more, "click", () => {
      limit += MORE;
      showTiles();
    });
    const picker = add(add(chosenBar, "label", "Order "), "select", "");
    for (const name of ["as listed", ...Object.keys(worth)]) add(picker, "option", name);
    on(picker, "change", () => {
      [order, limit] = [picker.value, FIRST];
      showTiles();
    });
    let before = "";
    on(document, "selected", () => {
      const now = location.hash.replace(/&?score=[^&]*/, "");
      if (now !== before) limit = FIRST;
      before = now;
      showTiles();
    });
  }

  const point = (box, svg) => {
    for (const other of all(".on", svg)) other.classList.remove("on");
    svg.querySelector(".tag")?.remove();
    if (!box) return;
    box.classList.add("on");
    const tag = drawn(svg, "text", { class: "tag" }), view = svg.viewBox.baseVal;
    const scale = 1 / svg.getScreenCTM().a, { x, y, height } = box.getBBox();
    tag.textContent = textOf(box);
    const long = tag.getComputedTextLength() * scale, left = Math.max(4 * scale, Math.min(x, view.width - long - 4 * scale));
    const top = y > 20 * scale ? y - 6 * scale : Math.min(y + height + 16 * scale, view.height - 4 * scale);
    tag.setAttribute("transform", `translate(${left} ${top}) scale(${scale})`);
  };
  const show = step => {
    at = (at + step + shown.length) % shown.length;
    const svg = shown[at].querySelector("svg").cloneNode(true);
    const [name, counts] = shown[at].querySelector("figcaption").children;
    part("top").firstElementChild.textContent = `${name.textContent}: ${counts.textContent}`;
    part("shot").replaceChildren(svg);
    const boxes = all("[data-c]", svg).filter(isOn);
    // What is chosen comes first.
    boxes.sort((a, b) => is(b, "is-chosen") - is(a, "is-chosen") || STATES.indexOf(stateIn(a)) - STATES.indexOf(stateIn(b)) || (b.dataset.s ?? 9) - (a.dataset.s ?? 9));
    part("list").replaceChildren();
    for (const box of boxes) {
      const item = add(part("list"), "li"), button = add(item, "button", textOf(box), { type: "button", class: `${stateIn(box)}${is(box, "is-chosen") ? " is-chosen" : ""}` });
      on(button, "focus mouseenter", () => point(box, svg));
      on(box, "mouseenter", () => point(box, svg));
      const suspect = about ? about.suspects.findIndex(([, place]) => place === +box.dataset.i) : box.dataset.i;
      if (suspect !== -1) addVerdicts(item, suspect);
    }
    if (review) showVerdicts();
  };
  const open = item => {
    at = shown.indexOf(item);
    dialog.showModal();
    show(0);
  };
  function opens(item) {
    const shot = item.querySelector(".shot");
    Object.assign(shot, { tabIndex: 0, role: "button", ariaHasPopup: "dialog" });
    on(shot, "click", () => open(item));
    on(shot, "keydown", event => {
      if (event.key !== "Enter" && event.key !== " ") return;
      event.preventDefault();
      open(item);
    });
  }
  items.forEach(opens);
  for (const button of all("[data-step]", dialog))
    on(button, "click", () => +button.dataset.step ? show(+button.dataset.step) : dialog.close());
  on(dialog, "click", event => event.target === dialog && dialog.close());
  on(dialog, "keydown", event => {
    const step = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
    if (step) show(step);
  });
  showTiles();
  if (isLive) readColumns(about).then(read => {
    store = read;
    for (const item of items) tiles.set(rowOf(item), item);
    showChosen();
    document.documentElement.dataset.boxes = "there";
  }, () => write(status, "This browser cannot read the boxes of the page: use one of 2023 or later."));
}
