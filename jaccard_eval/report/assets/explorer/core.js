// The folder of all images: one or two models are loaded, and one of them is looked at.
const waiting = {}, get = id => document.getElementById(id), VIEW = ["score", "show", "sort", "model"];
let head = null, models = [], model = null, tally = null;
// A script is the one thing that a page on a disk may load; each calls this.
self.loaded = (name, content) => waiting[name](content);
const load = name => new Promise((done, fail) => {
  waiting[name] = done;
  on(add(document.head, "script", "", { src: `data/${name}.js` }), "error", () => fail(`data/${name}.js`));
});
const use = other => { model = other; ({ about, store } = other); };
// What a function returns for another model.
const within = (other, act) => {
  const own = model;
  use(other);
  try {
    return act();
  } finally {
    use(own);
  }
};
const rival = () => models.find(other => other !== model);
const isTiled = () => chosen.show === "boxes";
const scoreNow = () => chosen.score ?? about.steps[about.start];
const asked = (picks = chosen) => ({ ...picks, error: picks.error ?? (picks.suspect === undefined ? "wrong" : undefined) });
const suspectsAt = place => about.suspects.flatMap(([, at], i) => at === place ? [i] : []);
// The same objects as another model sees them: by image and place in it, as images may come in another order.
const codesOf = other => {
  const own = store, codes = within(other, () => codesAt(stepNow));
  return other.store.sameOrder ? codes : Uint8Array.from({ length: own.m }, (_, place) => {
    const row = own.image[place];
    return codes[other.store.firstObject[other.rowOf.get(own.names[row])] + place - own.firstObject[row]];
  });
};
const survey = choice => select(choice, stepNow, rival() ? codesOf(rival()) : null);

const fill = (made, attributes = {}, ...children) => {
  for (const [key, value] of Object.entries(attributes)) {
    if (key === "text") made.textContent = value;
    else if (typeof value === "function") on(made, key, value);
    else if ((value ?? null) !== null) made.setAttribute(key, value);
  }
  made.append(...children);
  return made;
};
const soft = text => el("p", { class: "soft", text }), small = text => el("small", { text });
const el = (name, ...more) => fill(document.createElement(name), ...more);
const draw = (name, ...more) => fill(document.createElementNS("http://www.w3.org/2000/svg", name), ...more);
// What is drawn anew must not take the focus from who works with keys: the button of the same key has it again.
const renew = (root, ...children) => {
  const key = root.contains(document.activeElement) && document.activeElement.dataset.key;
  root.replaceChildren(...children);
  if (key) all("[data-key]", root).find(element => element.dataset.key === key)?.focus({ preventScroll: true });
};
const buttonOf = (key, text, click, more = {}) => el("button", { type: "button", "data-key": key, text, click, ...more });
// A button that selects boxes says how many in data-n.
const pickButton = (picks, n, attributes, ...children) => el("button", {
  type: "button", "data-key": JSON.stringify(picks), "data-n": n, "aria-pressed": holds(picks), click: () => choose(picks), ...attributes,
}, ...children);
const words = key => ({
  error: errors()[chosen.error], object: cellWords(chosen.object, chosen.pred), sure: `score ≥ ${chosen.sure}`, suspect: `suspect: ${about.suspects[chosen.suspect]?.[0] ?? chosen.suspect}`,
  change: `found by ${(chosen.change === "won" ? model : rival())?.about.name} alone`,
}[key] ?? chosen[key]);
const capital = text => text[0].toUpperCase() + text.slice(1);
const filters = () => FILTERS.filter(key => key !== "pred" && chosen[key] !== undefined);
const without = (...keys) => Object.fromEntries(Object.entries(chosen).filter(([key]) => !keys.includes(key)));
const total = counts => counts.reduce((sum, n) => sum + n, 0), sizeOf = ({ counts }) => total(Object.values(counts));
// Files are listed in the order of the first model's images.
const fileOf = row => models[0].rowOf.get(store.names[row]);
// Of label maps there are several pictures of an image; the last one shows where they differ.
const pictureOf = (row, layer) => {
  const file = head.pictures[fileOf(row)];
  return file && about.maps ? `${file}${layer ?? about.maps.length - 1}.png` : file;
};
const { format: compact } = new Intl.NumberFormat("en", { notation: "compact" });
