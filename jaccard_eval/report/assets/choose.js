// What is chosen on a page: its line of choices, what they select, and what else of the page chooses.
const press = (cell, act, attributes) => {
  const text = cell.textContent;
  cell.textContent = "";
  on(add(cell, "button", text, { type: "button", ...attributes }), "click", act);
};
const option = (table, text) => {
  const label = add(table.parentElement, "label", `${text} `, { class: "option" });
  table.parentElement.before(label);
  return label;
};
const isNarrowed = () => FILTERS.some(key => chosen[key] !== undefined);
const chosenWords = () => {
  const { class: name, object, pred, error, size, slice, sure, suspect } = chosen, cell = object === undefined ? "" : cellWords(object, pred);
  return listed(slice, size, name, cell, error && (errors()[error] ?? error), sure && `score ≥ ${sure}`, suspect && `suspect (${about.suspects[suspect]?.[0] ?? suspect})`);
};
const saves = (parent, text, name, rows) => on(add(parent, "button", text, { type: "button", class: "save no-print" }), "click", () => saveAs(name, rows()));

const chosenBar = about && all(".gallery .tools")[0] ? add(document.body, "div", "", { class: "chosen no-print" }) : null;
const status = chosenBar && add(chosenBar, "p", "", { role: "status" });
// What is chosen far above its images says so where one looks, and leads there.
const jump = chosenBar && add(all("#score")[0], "button", "", { type: "button", class: "jump no-print", hidden: "" });
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
    if (key) text = `There is no ${key.startsWith("s") ? key : "class"} “${chosen[key]}” on this page.`;
  }
  write(status, text);
  write(jump, `${text.split(" in ")[0]} ↓`);
  for (const button of [jump, ...all("button", chosenBar)]) button.hidden = !narrowed;
  // A suspect by its place in the list is one of a kind.
  for (const [key, field] of Object.entries(fields)) field.value = key === "suspect" && about.suspects[chosen[key]]?.[0] || (chosen[key] ?? "");
  for (const link of all(".next a")) {
    const same = new URLSearchParams(link.hash.slice(1));
    const now = narrowed && KEYS.every(key => key === "score" || (same.get(key) ?? undefined) === chosen[key]);
    now ? link.setAttribute("aria-current", "true") : link.removeAttribute("aria-current");
  }
};
const remember = () => {
  history.replaceState(null, "", addressOf(chosen));
  document.dispatchEvent(new CustomEvent("chosen"));
  showChosen();
};
on(window, "hashchange", () => {
  if (!location.hash.includes("=")) return;
  chosen = readAddress();
  document.dispatchEvent(new CustomEvent("chosen"));
  showChosen();
  document.getElementById("images")?.scrollIntoView();
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
  on(jump, "click", () => document.getElementById("images").scrollIntoView());
  field("error", "Error", errors());
  if (!about.boxes[2]) field("size", "Size", named(SIZES.slice(1)));
  if (about.slices.length) field("slice", "Slice", named(about.slices));
  if (about.suspects.length) field("suspect", "Suspect", named(new Set(about.suspects.map(([kind]) => kind))));
  on(add(chosenBar, "button", "Show all", { type: "button" }), "click", () => {
    chosen = chosen.score ? { score: chosen.score } : {};
    remember();
  });
  saves(chosenBar, "Save these boxes (CSV)", "boxes.csv", () => boxRows(selection.marks));
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
on(document, "chosen", () => pressed.forEach(([button, picks]) => { button.ariaPressed = holds(picks); }));
for (const table of all("table.sortable")) {
  const section = table.closest("section"), rows = [...table.rows];
  if (rows.length > 3 && section?.id) saves(table.parentElement.parentElement, "Save as CSV", `${section.id}.csv`, () => [...table.rows].filter(row => !row.hidden).map(row => [...row.cells].filter(cell => !cell.matches(".drawn")).map(cell => cell.textContent)));
}
