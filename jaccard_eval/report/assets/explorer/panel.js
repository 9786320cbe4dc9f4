// Left: what to fix next, what goes wrong, sizes, slices, classes, confusion. All of it are buttons that select boxes.
const bar = (parts, most) => {
  const made = draw("svg", { class: "bar", viewBox: "0 0 100 9", preserveAspectRatio: "none", "aria-hidden": "true" });
  let x = 0;
  for (const [look, n] of parts) {
    const width = most ? 100 * n / most : 0;
    made.append(draw("rect", { class: look, x, width, height: 9 }));
    x += width;
  }
  return made;
};
const part = (title, ...children) => [el("h2", { text: title }), ...children];
const row = (picks, name, n, ...cells) => el("tr", { class: holds(picks) ? "on" : null, click: event => event.target.closest("button") ?? choose(picks) },
  el("th", { scope: "row" }, swatch(picks.class), pickButton(picks, n, { title: name }, name)), ...cells);
const number = n => el("td", { class: "num", text: typeof n === "number" ? (n > 99999 ? compact : count)(n) : n });
// The colour that maps have a class in.
const swatch = name => {
  const made = el("i");
  made.style.background = about.colours?.[about.classes.indexOf(name)] ?? "";
  return made;
};

const cards = () => {
  const start = about.steps[about.start];
  const made = about.next.map(([text, advice, picks, gain]) => {
    const on = holds(picks) && scoreNow() === start;
    const show = picks.sure || picks.object !== undefined ? { show: "boxes" } : {};
    return el("li", {}, el("button", {
      type: "button", class: `${errors()[picks.error]}`.startsWith("missed") ? "missed" : "false", "data-key": text, "aria-pressed": on,
      click: () => put({ ...Object.fromEntries(VIEW.map(key => [key, chosen[key]])), ...(on ? {} : { ...picks, ...show, score: start }) }),
    }, el("b", { text }), small(gain ? `${advice} · about ${gain} if fixed` : advice)));
  });
  return made.length ? part(about.maps ? "Fix next" : `Fix next, at score ≥ ${start}`, el("ol", { class: "cards" }, ...made)) : [];
};
const alone = () => rival() ? part("Found", el("div", { class: "row" }, ...["lost", "won"].map(change => {
  const by = change === "won" ? model : rival();
  return pickButton({ change }, tally[change], {}, `${count(tally[change])} by ${by.about.name} alone`);
}))) : [];
const kinds = () => {
  const of = kind => tally.kinds[KINDS.indexOf(kind)], most = Math.max(1, ...about.lists.flatMap(([, listed]) => listed.map(([kind]) => of(kind))));
  return part("What goes wrong", el("div", { class: "two" }, ...about.lists.map(([side, listed]) => {
    const n = total(listed.map(([kind]) => of(kind)));
    return el("table", {}, el("tbody", {}, row({ error: side }, capital(side), n, el("td", {}), number(n)), ...listed.map(([error, name]) =>
      row({ error }, name, of(error), el("td", { class: "w" }, bar([[side, of(error)]], most)), number(of(error))))));
  })));
};
const picking = (title, key, names, counts, more = {}) => names.length ? part(title, el("div", { class: `row ${key}` }, ...names.map((name, i) =>
  pickButton({ [key]: name, ...more }, counts[i], {}, `${name} ${count(counts[i])}`)))) : [];

const suspects = () => review ? [el("div", { id: "review" }, ...picking("Suspected labels", "suspect", Object.keys(tally.suspects), Object.values(tally.suspects), { show: "boxes" }),
  el("p", { role: "status" }), el("button", { type: "button", class: "save", text: "Save reviewed.csv", click: () => saveAs("reviewed.csv", reviewedRows()) }))] : [];

const SHOWN = 12, ORDERS = {
  class: (a, b) => a.name < b.name ? -1 : a.name > b.name ? 1 : 0, lost: (a, b) => b.lost - a.lost,
  missed: (a, b) => b.missed - a.missed, false: (a, b) => b.false - a.false, [/* of the first metric */ "AP"]: (a, b) => (a.value ?? 2) - (b.value ?? 2),
};
let order = "lost", wanted = "", isWhole = false;
const classTable = () => {
  const listed = about.classes.map((name, i) => ({ name, i, lost: about.lost[i], value: about.values[i], missed: tally.missed[i], false: tally.false[i] }))
    .filter(({ name }) => name.toLowerCase().includes(wanted)).sort(ORDERS[order]);
  const most = Math.max(1, ...listed.map(line => line.missed + line.false));
  const shown = listed.filter(({ name }, place) => isWhole || wanted || place < SHOWN || name === chosen.class);
  const heading = key => el("th", { scope: "col", class: key === "class" ? null : "num", "aria-sort": key === order ? key === "class" || key === "AP" ? "ascending" : "descending" : null },
    buttonOf(`by ${key}`, `${key === "missed" && chosen.change ? "objects" : key === "AP" ? about.value : key}${key === order ? " ▾" : ""}`, () => { order = key; drawPanel(); }));
  const table = el("table", {}, el("thead", {}, el("tr", {}, heading("class"), heading("lost"), el("td", { class: "soft", text: "missed, false" }), heading("missed"), heading("false"), heading("AP"))),
    el("tbody", {}, ...shown.map(line => row({ class: line.name }, line.name, line.missed + line.false, number(Math.round(line.lost)),
      el("td", { class: "w" }, bar([["missed", line.missed], ["false", line.false]], most)), number(line.missed), number(line.false),
      number(line.value === null ? "n/a" : line.value.toFixed(3))))));
  const rest = listed.length - shown.length;
  const more = rest > 0 || isWhole && listed.length > SHOWN ? buttonOf("all classes", isWhole ? `Show ${SHOWN}` : `Show all ${count(listed.length)}`, () => { isWhole = !isWhole; drawPanel(); }) : "";
  return [table, listed.length ? more : soft("No class has such a name.")];
};
const matrix = () => {
  const k = about.classes.length, at = (of, to) => tally.cells[of * (k + 1) + to], weight = new Float64Array(k), own = about.classes.indexOf(chosen.class);
  for (let of = 0; of < k; of++) for (let to = 0; to < k; to++) if (of !== to && (own < 0 || own === of || own === to)) { weight[of] += at(of, to); weight[to] += at(of, to); }
  if (own >= 0) weight[own] = Infinity;
  const shown = [...weight.keys()].filter(i => weight[i]).sort((a, b) => weight[b] - weight[a]).slice(0, 8), lines = [...shown, k];
  const most = Math.max(1, ...shown.flatMap(of => shown.map(to => of === to ? 0 : at(of, to)))), key = i => about.classes[i] ?? "", name = i => key(i) || about.nobody;
  if (!shown.length) return part("Confusion", soft(`No class is ${about.verb} as another.`));
  return part("Confusion", el("div", { class: "matrix", tabindex: "0", role: "region", "aria-label": "Confusion" }, el("table", {}, el("thead", {}, el("tr", {}, el("td", { class: "soft", text: `object ↓ ${about.verb} as →` }), ...lines.map(to => el("th", { scope: "col", text: name(to) })))),
    el("tbody", {}, ...lines.map(of => el("tr", {}, el("th", { scope: "row", text: name(of) }), ...lines.map(to => {
      const n = at(of, to), cell = { object: key(of), pred: key(to) };
      if (!n || of === k && to === k) return el("td");
      const said = `${count(n)}: ${cellWords(key(of), key(to))}`, made = pickButton(cell, n, { title: said, "aria-label": said, class: of === to ? "hit" : null }, n > 9999 ? compact(n) : n);
      if (of !== to && of < k && to < k) made.style.setProperty("--share", `${Math.round(15 + 40 * n / most)}%`);
      return el("td", {}, made);
    })))))));
};
const drawPanel = () => {
  const find = get("find") ?? el("input", { id: "find", type: "search", placeholder: "Filter classes   /", "aria-label": "Filter classes", input: () => { wanted = find.value.toLowerCase(); drawClasses(); } });
  const isTyping = document.activeElement === find;
  renew(get("panel"), ...cards(), ...alone(), ...kinds(), ...picking("Sizes", "size", about.boxes[2] ? [] : SIZES.slice(1), tally.sizes.slice(1)), ...picking("Slices", "slice", about.slices, tally.slices), ...suspects(), ...part("Classes", find, el("div", { id: "classes" }, ...classTable())), ...matrix(),
    el("p", { class: "soft" }, el("a", { href: "numbers.html", text: "All numbers, curves and findings" })));
  if (isTyping) find.focus();
  if (review) showVerdicts();
};
const drawClasses = () => renew(get("classes"), ...classTable());
