// What is chosen: a class, a cell, a kind of error, a size, a slice, a least score. The address holds it, so that a
// link shows the same to others; a sentence of "Fix next" is such a link.
const KEYS = ["class", "object", "pred", "error", "size", "slice", "sure", "suspect", "score"];
const readAddress = () => Object.fromEntries([...new URLSearchParams(location.hash.slice(1))].filter(([key]) => KEYS.includes(key)));
let chosen = readAddress(), selection = null;
const ERRORS = {
  missed: "missed", false: "false", background: "false: on nothing", box: "false: box is off", class: "false: wrong class",
  both: "false: class and box", double: "false: duplicate",
};
const isNarrowed = () => KEYS.some(key => key !== "score" && chosen[key] !== undefined);
const chosenWords = () => {
  const { class: name, object, pred, error, size, slice, sure, suspect } = chosen;
  const cell = object === undefined ? "" : object === pred ? `${object} found` : object === "" ? `${pred} on nothing` : pred === "" ? `${object} missed` : `${object} detected as ${pred}`;
  return listed(slice, size, name, cell, error && (ERRORS[error] ?? error), sure && `score ≥ ${sure}`, suspect && `suspect (${about.suspects[suspect]?.[0] ?? suspect})`);
};
const boxesIn = (n, one = "box", many = "boxes") => `${count(n)} ${n === 1 ? one : many}`;

const chosenBar = about && all(".gallery .tools")[0] ? add(document.body, "div", "", { class: "chosen no-print" }) : null;
const status = chosenBar && add(chosenBar, "p", "", { role: "status" });
const unknown = () => ["class", "object", "pred"].find(key => chosen[key] && !about.classes.includes(chosen[key]))
  ?? (chosen.slice === undefined || about.slices.includes(chosen.slice) ? undefined : "slice")
  ?? (chosen.suspect === undefined || about.suspects.some(([kind], i) => [kind, `${i}`].includes(chosen.suspect)) ? undefined : "suspect");
const showChosen = () => {
  if (!store) return;
  const narrowed = isNarrowed();
  selection = narrowed ? select(chosen) : null;
  document.dispatchEvent(new CustomEvent("selected"));
  let text = "";
  if (narrowed) {
    const { counts, all } = selection, n = Object.values(counts).reduce((sum, more) => sum + more, 0);
    const byState = ["missed", "false", "found"].map(state => count(counts[state] ?? 0) + " " + state).join(", ");
    const parts = chosen.error || chosen.object !== undefined || chosen.sure || chosen.suspect ? "" : ` (${byState})`;
    const of = about.rows ? "images here" : "images", key = unknown();
    text = `${chosenWords()}: ${boxesIn(n)} in ${count(all.filter(Boolean).length)} of the ${count(all.length)} ${of}${parts}`;
    if (key) text = `There is no ${/^s/.test(key) ? key : "class"} “${chosen[key]}” on this page.`;
  }
  write(status, text);
  for (const button of all("button", chosenBar)) button.hidden = !narrowed;
  for (const [key, field] of Object.entries(fields)) field.value = chosen[key] ?? "";
  for (const link of all(".next a")) {
    const same = new URLSearchParams(link.hash.slice(1));
    const now = narrowed && KEYS.every(key => key === "score" || (same.get(key) ?? undefined) === chosen[key]);
    now ? link.setAttribute("aria-current", "true") : link.removeAttribute("aria-current");
  }
};
const remember = () => {
  const text = new URLSearchParams(Object.entries(chosen).filter(([, value]) => value !== undefined));
  history.replaceState(null, "", `#${text}`);
  document.dispatchEvent(new CustomEvent("chosen"));
  showChosen();
};
// Choose what is not chosen yet, or let go of it; a cell is chosen by itself, and in place of a class or a kind.
const choose = picks => {
  const same = Object.entries(picks).every(([key, value]) => chosen[key] === value), { score, size, slice } = chosen;
  const isCell = "object" in picks;
  chosen = { ...(isCell ? { score, size, slice } : chosen), ...picks };
  if (!isCell && ("class" in picks || "error" in picks)) delete chosen.object, delete chosen.pred;
  if (same) for (const key in picks) delete chosen[key];
  remember();
};
on(window, "hashchange", () => {
  if (!location.hash.includes("=")) return;
  chosen = readAddress();
  document.dispatchEvent(new CustomEvent("chosen"));
  showChosen();
  document.getElementById("images")?.scrollIntoView();
});

const csvOf = rows => rows.map(row => row.map(text => {
  const safe = /^[=+@\t\r]|^-(?![\d.])/.test(text) ? `'${text}` : text; // no formula
  return /[",\n]/.test(safe) ? `"${safe.replace(/"/g, '""')}"` : safe;
}).join(",")).join("\n") + "\n";
const saves = (parent, text, name, rows) => on(add(parent, "button", text, { type: "button", class: "save no-print" }), "click", () => {
  const url = URL.createObjectURL(new Blob([csvOf(rows())], { type: "text/csv" }));
  const link = add(document.body, "a", "", { href: url, download: name, hidden: "" });
  link.click();
  link.remove();
  setTimeout(() => URL.revokeObjectURL(url), 10_000);
});

// A list to choose from for each key that has no place of its own on the page.
const fields = {};
const field = (key, title, options) => {
  const made = fields[key] = add(add(chosenBar, "label", `${title} `), "select", "");
  for (const [value, text] of Object.entries({ "": "all", ...options })) add(made, "option", text, { value });
  on(made, "change", () => {
    const { [key]: _, ...rest } = chosen;
    chosen = rest;
    made.value ? choose({ [key]: made.value }) : remember();
  });
};
const named = names => Object.fromEntries([...names].map(name => [name, name]));
if (chosenBar) {
  all(".gallery .tools")[0].after(chosenBar);
  field("error", "Error", ERRORS);
  if (!about.boxes[2]) field("size", "Size", named(SIZES.slice(1)));
  if (about.slices.length) field("slice", "Slice", named(about.slices));
  if (about.suspects.length) field("suspect", "Suspect", named(new Set(about.suspects.map(([kind]) => kind))));
  on(add(chosenBar, "button", "Show all", { type: "button" }), "click", () => {
    chosen = chosen.score ? { score: chosen.score } : {};
    remember();
  });
  saves(chosenBar, "Save these boxes (CSV)", "boxes.csv", () => [["image", "class", "what", "score", "x", "y", "width", "height", "why"],
    ...[...selection.marks.keys()].filter(place => selection.marks[place]).map(place => [
      store.names[store.image[place]], about.classes[store.label[place]], stateOf(place) || "found", place < store.m ? "" : scoreOf(place).toFixed(4),
      ...sideOf(place).map(value => `${Math.round(value * 100) / 100}`), whyOf(place),
    ])]);
}

// Types of errors and slices choose their boxes; every table that can be sorted can be saved.
const TYPES = {
  classification: "class", localisation: "box", both: "both", duplicate: "double", background: "background", missed: "missed",
  "false positives": "false", "false negatives": "missed",
};
const choices = (selector, picksOf) => all(selector).filter(head => chosenBar && picksOf(head.textContent)).map(head => {
  const picks = picksOf(head.textContent);
  press(head, () => choose(picks), { "aria-pressed": false });
  return [head.querySelector("button"), picks];
});
const pressed = [
  ...choices("#errors tbody th", text => TYPES[text] && { error: TYPES[text] }),
  ...choices("#slices .scroll:first-of-type tbody th", text => about.slices.includes(text) && { slice: text }),
  ...all("#review tr[data-key]").flatMap(row => about ? choices(`#review tr[data-key=${row.dataset.key}] th`, () => ({ suspect: row.dataset.key.slice(8) })) : []),
];
on(document, "chosen", () => pressed.forEach(([button, picks]) => { button.ariaPressed = Object.entries(picks).every(([key, value]) => chosen[key] === value); }));
for (const table of all("table.sortable")) {
  const section = table.closest("section"), rows = [...table.rows];
  if (rows.length > 3 && section?.id) saves(table.parentElement.parentElement, "Save as CSV", `${section.id}.csv`, () => [...table.rows].filter(row => !row.hidden).map(row => [...row.cells].filter(cell => !cell.matches(".drawn")).map(cell => cell.textContent)));
}
