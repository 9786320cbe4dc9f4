// What is chosen: a class, a cell, a kind of error, a size, a least score. The address holds it, so that a link shows
// the same to others; a sentence of "Fix next" is such a link.
const [gallery] = all(".gallery"), boxNames = dataOf("gallery")?.names ?? [];
const KEYS = ["class", "object", "pred", "error", "size", "sure", "score"];
const readAddress = () => Object.fromEntries([...new URLSearchParams(location.hash.slice(1))].filter(([key]) => KEYS.includes(key)));
let chosen = readAddress();
const chosenBar = gallery && gallery.matches(":not(.sides)") && boxNames.length ? add(gallery, "div", "", { class: "chosen no-print" }) : null;
if (chosenBar) gallery.querySelector(".tools").after(chosenBar);
const status = chosenBar && add(chosenBar, "p", "", { role: "status" });
const is = (box, name) => box.classList.contains(name);
const ERRORS = { missed: "missed", false: "false", background: "on nothing", box: "box is off", class: "wrong class", both: "class and box", double: "duplicate" };

// Whether a box that shows is one of those that are chosen.
const isChosen = box => {
  const { c, k, z, o, s } = box.dataset, { class: name, object, pred, error, size, sure } = chosen, own = boxNames[c];
  const wrong = is(box, "false");
  return !is(box, "off") && (name === undefined || own === name) && (!size || z === size) && (!sure || wrong && +s >= +sure)
    && (!error || (error === "missed" || error === "false" ? is(box, error) : wrong && k === error))
    && (object === undefined || (object === pred ? is(box, "found") && own === object
      : object === "" ? wrong && own === pred && !boxNames[o]
      : pred === "" ? is(box, "missed") && own === object : wrong && own === pred && boxNames[o] === object));
};
const isNarrowed = () => KEYS.some(key => key !== "score" && chosen[key] !== undefined);
const chosenWords = () => {
  const { class: name, object, pred, error, size, sure } = chosen;
  const cell = object === undefined ? "" : object === pred ? `${object} found` : object === "" ? `${pred} on nothing` : pred === "" ? `${object} missed` : `${object} detected as ${pred}`;
  return [size, name, cell, error && (ERRORS[error] ?? error), sure && `score ≥ ${sure}`].filter(Boolean).join(", ");
};
const chosenBoxes = () => images.flatMap(image => all(".is-chosen", image));
const filterImages = () => {
  if (!chosenBar) return;
  const narrowed = isNarrowed();
  gallery.classList.toggle("narrowed", narrowed);
  for (const image of images) {
    let any = !narrowed;
    for (const box of all("[data-c]", image)) {
      const on = narrowed && isChosen(box);
      box.classList.toggle("is-chosen", on);
      any ||= on;
    }
    image.hidden = !any;
  }
  const n = narrowed ? chosenBoxes().length : 0, shown = images.filter(image => !image.hidden).length;
  write(status, narrowed ? `${chosenWords()}: ${count(n)} ${n === 1 ? "box" : "boxes"} in ${shown} of the ${images.length} images here` : "");
  for (const button of all("button", chosenBar)) button.hidden = !narrowed;
  for (const link of all(".next a")) {
    const same = new URLSearchParams(link.hash.slice(1));
    const now = narrowed && [...same].every(([key, value]) => chosen[key] === value) && KEYS.every(key => key === "score" || same.has(key) === (chosen[key] !== undefined));
    now ? link.setAttribute("aria-current", "true") : link.removeAttribute("aria-current");
  }
};
const remember = () => {
  const text = new URLSearchParams(Object.entries(chosen).filter(([, value]) => value !== undefined));
  history.replaceState(null, "", `#${text}`);
  document.dispatchEvent(new CustomEvent("chosen"));
  filterImages();
};
// Choose what is not chosen yet, or let go of it; what else is chosen of a class and a cell goes.
const choose = picks => {
  const same = Object.entries(picks).every(([key, value]) => chosen[key] === value);
  const { score, ...rest } = chosen;
  chosen = { ...("class" in picks || "error" in picks ? rest : {}), ...picks, ...(score && { score }) };
  if ("class" in picks) delete chosen.object, delete chosen.pred;
  if (same) for (const key in picks) delete chosen[key];
  remember();
};
on(window, "hashchange", () => {
  if (!location.hash.includes("=")) return;
  chosen = readAddress();
  document.dispatchEvent(new CustomEvent("chosen"));
  filterImages();
  document.getElementById("images")?.scrollIntoView();
});

const csvOf = rows => rows.map(row => row.map(text => {
  const safe = /^[=+@\t\r]|^-(?![\d.])/.test(text) ? `'${text}` : text; // no formula
  return /[",\n]/.test(safe) ? `"${safe.replace(/"/g, '""')}"` : safe;
}).join(",")).join("\n") + "\n";
const save = (name, rows) => add(document.body, "a", "", { href: `data:text/csv;charset=utf-8,${encodeURIComponent(csvOf(rows))}`, download: name, hidden: "" });
const saves = (parent, text, name, rows) => {
  const button = add(parent, "button", text, { type: "button", class: "save no-print" });
  on(button, "click", () => {
    const link = save(name, rows());
    link.click();
    link.remove();
  });
  return button;
};

if (chosenBar) {
  on(add(chosenBar, "button", "Show all", { type: "button" }), "click", () => {
    chosen = chosen.score ? { score: chosen.score } : {};
    remember();
  });
  saves(chosenBar, "Save these boxes (CSV)", "boxes.csv", () => [["image", "class", "what", "score", "x", "y", "width", "height", "why"], ...images.flatMap(image =>
    all(".is-chosen", image).map(box => {
      const { c, s, w = "" } = box.dataset, { x, y, width, height } = box.getBBox?.() ?? {};
      const what = ["missed", "false", "found", "ignored"].find(state => is(box, state));
      return [image.querySelector("b").textContent, boxNames[c], what, is(box, "object") ? "" : s, ...[x, y, width, height].map(String), w];
    }))]);
  // By what an image has at the score: its F1, its surest false positive, the least overlap of what is found.
  const of = (image, state) => all(`.${state}[data-c]:not(.off)`, image), least = numbers => Math.min(1, ...numbers);
  const ORDERS = {
    "as listed": image => images.indexOf(image),
    "lowest F1": image => { const hits = of(image, "false").length + of(image, "missed").length, found = all(".found:not(.object):not(.off)", image).length; return 2 * found / (2 * found + hits || 1); },
    "surest false": image => -Math.max(0, ...of(image, "false").map(box => +box.dataset.s)),
    "least overlap": image => least(all(".found[data-i]:not(.off)", image).map(box => +box.dataset.i)),
  };
  const label = add(chosenBar, "label", "Order "), order = add(label, "select", "");
  for (const name in ORDERS) add(order, "option", name);
  on(order, "change", () => {
    const by = ORDERS[order.value], shots = gallery.querySelector(".shots");
    const keyed = [...images].map(image => [by(image), image]).sort((a, b) => a[0] - b[0]);
    shots.replaceChildren(...keyed.map(([, image]) => image));
    document.dispatchEvent(new CustomEvent("ordered"));
  });
}

// Types of errors choose their boxes; every table that can be sorted can be saved.
const TYPES = { classification: "class", localisation: "box", both: "both", duplicate: "double", background: "background", missed: "missed", "false positives": "false", "false negatives": "missed" };
const typeButtons = all("#errors tbody th").filter(head => chosenBar && TYPES[head.textContent]).map(head => {
  const error = TYPES[head.textContent];
  press(head, () => choose({ error }), { "aria-pressed": false });
  return [head.querySelector("button"), error];
});
on(document, "chosen", () => typeButtons.forEach(([button, error]) => { button.ariaPressed = chosen.error === error; }));
for (const table of all("table.sortable")) {
  const section = table.closest("section"), rows = [...table.rows];
  if (rows.length > 3 && section?.id) saves(table.parentElement.parentElement, "Save as CSV", `${section.id}.csv`, () => [...table.rows].filter(row => !row.hidden).map(row => [...row.cells].filter(cell => !cell.matches(".drawn")).map(cell => cell.textContent)));
}
