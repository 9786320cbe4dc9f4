// One image: all its boxes, each with its reason beside the picture; two models with one zoom.
const shows = { objects: true, false: true, found: true }, LOOKS = { missed: 3, false: 2, found: 1, ignored: 0, seen: 0, below: 0 };
let stages = [], frame = [0, 0, 1, 1], hot = null, failures = [], turn = -1, aim = null;
const isWrong = ({ side }) => side === "missed" || side === "false";
const openImage = (row, place = null) => {
  aim = place;
  chosen = { ...chosen, img: store.names[row] };
  remember(true);
};
const closeImage = () => {
  chosen = without("img", "pair");
  remember(true);
  get("grid").focus({ preventScroll: true });
};
const rowNow = () => chosen.img === undefined ? -1 : model.rowOf.get(chosen.img) ?? -1;
const isPair = () => chosen.pair === "1" && models.length > 1 && rowNow() >= 0;
const rowsNow = () => {
  const rows = isTiled() ? [...new Set(items.map(place => store.image[place]))] : items;
  return rows.length ? rows : [...store.names.keys()];
};
const makeStage = (own, name, layer) => within(own, () => {
  const row = own.rowOf.get(name), isOwn = own === models.find(({ key }) => key === (chosen.model ?? "a"));
  const list = places(row).map(place => {
    const code = codeOf(place), state = STATE_OF[code];
    return { id: `${own.key}${place}`, place, box: sideOf(place), side: code === SEEN ? "seen" : state || (suspectsAt(place).length ? "below" : ""), code, text: nameOf(place) + scoreText(place), why: state === "ignored" ? "ignored" : whyOf(place), marked: isOwn && selection.marks[place] };
  }).filter(({ side }) => side);
  const visible = list.filter(({ side, box }) => box[2] && box[3] && (side === "false" || side === "found" ? shows[side] : shows.objects)), title = own.about.maps?.[layer] ?? own.about.name;
  const picture = draw("svg", { role: "img", "aria-label": title ? `${name}, ${title}` : name }), tags = draw("g");
  picture.append(...pictures(row, false, layer), ...[...visible].sort((a, b) => LOOKS[a.side] - LOOKS[b.side]).flatMap(({ id, place, side, marked }) => outline(place, side).map(line => {
    line.dataset.id = id;
    if (marked) line.classList.add("marked");
    return line;
  })));
  // Small boxes lie on top of large ones, so that each can be pointed at.
  picture.append(...[...visible].sort((a, b) => b.box[2] * b.box[3] - a.box[2] * a.box[3]).map(({ id, box: [x, y, width, height] }) => {
    const hit = draw("rect", { class: "over", x, y, width, height });
    on(hit, "mouseenter", () => heat(id));
    on(hit, "click", () => heat(id, true));
    return hit;
  }), tags);
  drags(picture);
  return { own, picture, tags, list, visible, size: [store.width[row], store.height[row]], figure: el("figure", {}, title ? el("figcaption", { text: title }) : "", picture) };
});
const verdicts = i => {
  const made = el("div", { class: "judged" }, small(`${about.suspects[i][0]}: ${review.rows[i][9]}`));
  addVerdicts(made, i, true);
  return made;
};
const judgeNow = verdict => {
  const place = rowNow() >= 0 ? Number(hot?.slice(1) ?? -1) : isTiled() ? items[cursor] : -1, [i] = suspectsAt(place);
  if (i === undefined) return;
  judge(i, verdict);
  drawGrid(true);
  write(get("live"), `${review.rows[i][0]} ${nameOf(place)}: ${opinionOf(i)[0] || "not judged"}`);
};
const reasonList = ({ own, list }) => {
  const group = (side, isOpen, title = capital(side)) => {
    const isSuspect = side === "suspect", rank = own.store.pixels ?? own.store.score, of = list.filter(one => isSuspect ? suspectsAt(one.place).length : one.side === side).sort((a, b) => b.marked - a.marked || rank[b.place] - rank[a.place]);
    if (!of.length) return "";
    const lines = el("ol", {}, ...of.map(({ id, place, box, text, why, marked }) => el("li", {}, el("button", {
      type: "button", class: `${side}${marked ? " marked" : ""}`, "data-id": id, "data-key": id, mouseenter: () => heat(id), focus: () => heat(id), click: () => { heat(id); zoomBox(box); },
    }, el("b", { text }), small(` ${why}`)), ...isSuspect ? suspectsAt(place).map(verdicts) : [])));
    const heading = `${title} (${count(of.length)})`;
    return isOpen ? el("div", {}, el("h3", { text: heading }), lines) : el("details", {}, el("summary", { text: heading }), lines);
  };
  const isFine = !list.some(isWrong);
  return [isPair() ? el("h2", { text: own.about.name }) : "", group("suspect", true, "Suspected labels"), group("missed", true), group("false", true), group("found", isFine), group("ignored", false),
    list.length ? "" : soft("Nothing is here.")];
};
const drawView = () => {
  const row = rowNow(), view = get("view");
  document.body.classList.toggle("pair", isPair());
  view.hidden = row < 0;
  if (row < 0) {
    view.replaceChildren();
    stages = [];
    return;
  }
  const rows = rowsNow(), place = rows.indexOf(row), toggle = (key, short) => buttonOf(key, capital(key), () => flip(key), { title: `key ${short}`, "aria-pressed": shows[key] });
  stages = isPair() ? models.map(own => makeStage(own, chosen.img)) : (about.maps ?? [""]).map((_, layer) => makeStage(model, chosen.img, layer));
  const told = isPair() ? stages : stages.slice(0, 1);
  renew(view, el("header", {}, buttonOf("back", "← All images", closeImage), el("h2", { text: chosen.img }),
    el("span", { class: "soft", text: place < 0 ? "not in the selection" : `${count(place + 1)} of ${count(rows.length)}` }),
    buttonOf("previous", "‹", () => step(-1), { "aria-label": "Previous image (k)" }), buttonOf("next", "›", () => step(1), { "aria-label": "Next image (j)" }),
    toggle("objects", "g"), toggle("false", "p"), toggle("found", "t"),
    models.length > 1 ? buttonOf("pair", "Two models", () => put(isPair() ? without("pair") : { ...chosen, pair: "1" }), { "aria-pressed": isPair() }) : ""),
  el("div", { id: "stage" }, ...stages.map(({ figure }) => figure)), el("div", { id: "reasons", tabindex: "0", role: "region", "aria-label": "Reasons" }, el("p", { text: store.captions?.[row] ?? "" }), ...told.flatMap(reasonList)));
  if (review) showVerdicts();
  failures = told.flatMap(({ list }) => list.filter(isWrong)).sort((a, b) => b.marked - a.marked);
  turn = -1;
  const aimed = aim === null ? null : stages[0].list.find(one => one.place === aim);
  aim = null;
  zoomOut();
  if (aimed) {
    heat(aimed.id);
    zoomBox(aimed.box);
    turn = failures.indexOf(aimed);
  }
  // The next ones are read ahead.
  for (const next of [rows[place + 1], rows[place - 1]]) {
    const address = next === undefined ? "" : pictureOf(next);
    if (address) new Image().src = address;
  }
};
const heat = (id, isScrolled = false) => {
  hot = id;
  for (const element of all("[data-id]", get("view"))) element.classList.toggle("hot", element.dataset.id === id);
  if (isScrolled) all(".hot", get("reasons"))[0]?.scrollIntoView({ block: "nearest" });
  placeTags();
};
// A label stands at one of eight places around its box, where it covers least of any box or label: as a share of the
// smaller of both. Where each hides more than MOST, there is none; the list has it.
const MOST = .3;
const hidden = (one, other) => common(one, other) / Math.min(one[2] * one[3], other[2] * other[3]);
const placeTags = () => {
  for (const { picture, tags, visible, size } of stages) {
    const { width, height } = picture.getBoundingClientRect(), view = picture.viewBox.baseVal;
    tags.replaceChildren();
    if (!width || !view) continue;
    const unit = Math.max(view.width / width, view.height / height), tall = 17 * unit, gap = 2 * unit, taken = [];
    const room = [view.x + (view.width - unit * width) / 2, view.y + (view.height - unit * height) / 2, unit * width, unit * height];
    const named = visible.filter(one => one.id === hot || isWrong(one) && (filters().length ? one.marked : !about.maps)).sort((a, b) => (b.id === hot) - (a.id === hot) || b.marked - a.marked);
    for (const { text, box: [x, y, w, h] } of named) {
      const wide = (text.length * 7 + 10) * unit, right = x + w - wide, below = y + h + gap, above = y - tall - gap, low = y + h - tall;
      const spots = [[x, above], [right, above], [x, below], [right, below], [x + w + gap, y], [x - wide - gap, y], [x + w + gap, low], [x - wide - gap, low]]
        .filter(([u, v]) => u >= room[0] && v >= room[1] && u + wide <= room[0] + room[2] && v + tall <= room[1] + room[3])
        .map(([u, v]) => {
          const spot = [u, v, wide, tall];
          // A box around most of the scene is not hidden by a label in it.
          const costs = [...visible.filter(({ box }) => box[2] * box[3] < .25 * size[0] * size[1]).map(({ box }) => hidden(spot, box)), ...taken.map(other => 4 * hidden(spot, other))];
          return [Math.max(0, ...costs), total(costs), spot];
        }).filter(([most]) => most <= MOST).sort((a, b) => a[1] - b[1]);
      if (!spots.length) continue;
      const [, , spot] = spots[0], tag = draw("text", { class: "tag", x: spot[0] + 5 * unit, y: spot[1] + 12.5 * unit });
      tag.textContent = text;
      tag.style.fontSize = `${12 * unit}px`;
      taken.push(spot);
      tags.append(draw("rect", { class: "tagged", x: spot[0], y: spot[1], width: wide, height: tall, rx: 3 * unit }), tag);
    }
  }
};
const zoomTo = view => {
  frame = view;
  for (const { picture } of stages) picture.setAttribute("viewBox", view.join(" "));
  placeTags();
};
const zoomOut = () => zoomTo([0, 0, ...stages[0].size]);
const zoomBox = ([x, y, w, h]) => {
  const [width, height] = stages[0].size, side = Math.max(3 * (Math.max(w, h) || width), Math.max(width, height) / 20);
  side > .9 * Math.max(width, height) ? zoomOut() : zoomTo([x + w / 2 - side / 2, y + h / 2 - side / 2, side, side]);
};
const zoomBy = (by, x = frame[0] + frame[2] / 2, y = frame[1] + frame[3] / 2) => {
  const [width, height] = stages[0].size, scale = Math.max(frame[2] * by, width / 60) / frame[2];
  frame[2] * scale > 1.02 * width && frame[3] * scale > 1.02 * height ? zoomOut() : zoomTo([x - (x - frame[0]) * scale, y - (y - frame[1]) * scale, frame[2] * scale, frame[3] * scale]);
};
const drags = picture => {
  const fingers = new Map(), point = event => {
    const matrix = picture.getScreenCTM().inverse();
    return [matrix.a * event.clientX + matrix.e, matrix.d * event.clientY + matrix.f];
  };
  const spread = () => { const [a, b] = [...fingers.values()]; return Math.hypot(a.clientX - b.clientX, a.clientY - b.clientY); };
  picture.addEventListener("wheel", event => { event.preventDefault(); zoomBy(event.deltaY > 0 ? 1.2 : 1 / 1.2, ...point(event)); }, { passive: false });
  on(picture, "pointerdown", event => { fingers.set(event.pointerId, event); });
  on(picture, "pointermove", event => {
    const was = fingers.get(event.pointerId);
    if (!was) return;
    if (fingers.size === 2) {
      const before = spread();
      fingers.set(event.pointerId, event);
      return zoomBy(before / Math.max(spread(), 1), ...point(event));
    }
    // A click on a box moves nothing.
    if (Math.hypot(event.clientX - was.clientX, event.clientY - was.clientY) < 3 && !picture.hasPointerCapture(event.pointerId)) return;
    picture.setPointerCapture(event.pointerId);
    const [[x, y], [u, v]] = [point(was), point(event)];
    fingers.set(event.pointerId, event);
    zoomTo([frame[0] + x - u, frame[1] + y - v, frame[2], frame[3]]);
  });
  on(picture, "pointerup pointercancel", event => fingers.delete(event.pointerId));
};
const flip = key => { shows[key] = !shows[key]; drawView(); };
const step = by => {
  const rows = rowsNow(), next = rows[rows.indexOf(rowNow()) < 0 ? 0 : rows.indexOf(rowNow()) + by];
  if (next === undefined) return;
  if (!isTiled()) cursor = rows.indexOf(next);
  openImage(next);
  write(get("live"), store.names[next]);
};
const nextFailure = () => {
  if (rowNow() < 0) {
    if (items.length) openImage(rowsNow()[0]);
    if (!failures.length) return;
  }
  turn++;
  if (turn >= failures.length) {
    const before = chosen.img;
    step(1);
    if (chosen.img === before) turn = failures.length;
    return;
  }
  heat(failures[turn].id, true);
  zoomBox(failures[turn].box);
  write(get("live"), `${failures[turn].text}: ${failures[turn].why}`);
};
