// What is chosen: a class, a cell, a kind of error, a size, a slice, a least score. The address holds it, so that a
// link shows the same to others; a sentence of "Fix next" is such a link. The last keys are those of a folder of images.
const FILTERS = ["class", "object", "pred", "error", "size", "slice", "sure", "suspect", "change"];
const KEYS = [...FILTERS, "score", "show", "sort", "img", "model", "pair"];
const readAddress = () => Object.fromEntries([...new URLSearchParams(location.hash.slice(1))].filter(([key]) => KEYS.includes(key)));
const addressOf = picks => `#${new URLSearchParams(Object.entries(picks).filter(([, value]) => value !== undefined))}`;
let chosen = readAddress(), selection = null;
const errors = () => Object.fromEntries(about.lists.flatMap(([side, kinds]) => [[side, side], ...kinds.map(([kind, name]) => [kind, `${side}: ${name.toLowerCase()}`])]));
const cellWords = (object, pred) => object === pred ? `${object} found` : object === "" ? `${pred} on nothing` : pred === "" ? `${object} missed` : `${object} ${about.verb} as ${pred}`;
const boxesIn = (n, one = about.unit[0], many = about.unit[1]) => `${count(n)} ${n === 1 ? one : many}`;
const unknown = () => ["class", "object", "pred"].find(key => chosen[key] && !about.classes.includes(chosen[key]))
  ?? (chosen.slice === undefined || about.slices.includes(chosen.slice) ? undefined : "slice")
  ?? (chosen.suspect === undefined || about.suspects.some(([kind], i) => [kind, `${i}`].includes(chosen.suspect)) ? undefined : "suspect");

// Choose what is not chosen yet, or let go of it. A cell, a kind of error, suspects and what one model alone finds take the
// place of each other, and a class that of a cell.
const INSTEAD = {
  object: ["class", "error", "sure", "suspect", "change"], change: ["object", "pred", "error", "sure", "suspect"], error: ["object", "pred", "change", "suspect"], suspect: ["object", "pred", "change", "error"], class: ["object", "pred"],
};
const holds = picks => Object.entries(picks).every(([key, value]) => chosen[key] === value);
const choose = picks => {
  const same = holds(picks), over = Object.keys(INSTEAD).find(key => key in picks);
  chosen = { ...chosen, ...picks };
  for (const key of [...(INSTEAD[over] ?? []), ...(same ? Object.keys(picks) : [])]) if (same || !(key in picks)) delete chosen[key];
  remember();
};

const csvOf = rows => rows.map(row => row.map(text => {
  const safe = /^[=+@\t\r]|^-(?![\d.])/.test(text) ? `'${text}` : text; // no formula
  return /[",\n]/.test(safe) ? `"${safe.replace(/"/g, '""')}"` : safe;
}).join(",")).join("\n") + "\n";
const saveAs = (name, rows) => {
  const url = URL.createObjectURL(new Blob([csvOf(rows)], { type: "text/csv" }));
  const link = add(document.body, "a", "", { href: url, download: name, hidden: "" });
  link.click();
  link.remove();
  setTimeout(() => URL.revokeObjectURL(url), 10_000);
};
const boxRows = marks => [["image", "class", "what", store.pixels ? "pixels" : "score", "x", "y", "width", "height", "why"],
  ...[...marks.keys()].filter(place => marks[place]).map(place => [
    store.names[store.image[place]], about.classes[store.label[place]], lookOf(place), store.pixels?.[place] ?? (place < store.m || about.maps ? "" : scoreOf(place).toFixed(4)),
    ...sideOf(place).map(value => `${Math.round(value * 100) / 100}`), whyOf(place),
  ])];

