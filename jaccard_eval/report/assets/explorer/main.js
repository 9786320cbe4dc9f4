// Start, the bar on top, keys. The address is the state: every change goes through remember().
const remember = (isStep = false) => {
  const address = addressOf(chosen);
  // A slider does not fill the history; opening an image does, so that Back closes it.
  if (address !== (location.hash || "#")) history[isStep ? "pushState" : "replaceState"](null, "", address);
  renderSoon();
};
const put = picks => {
  chosen = picks;
  remember();
};
const showAs = isBoxes => put({ ...without("img", "show"), ...(isBoxes ? { show: "boxes" } : {}) });
let seen = {}, planned = 0;
const renderSoon = () => { planned ||= requestAnimationFrame(render); };
const render = () => {
  planned = 0;
  use(models.find(({ key }) => key === chosen.model) ?? models[0]);
  stepNow = Math.max(0, about.steps.indexOf(scoreNow()));
  const { img } = chosen, rest = without("img", "pair"), picked = JSON.stringify(rest), place = JSON.stringify({ ...rest, score: 0 });
  if (picked !== seen.picked) {
    const isElsewhere = place !== seen.place;
    selection = survey(asked());
    tally = selection.tallies;
    items = ordered();
    drawBar();
    drawPanel();
    drawSelection();
    drawEmpty();
    if (isElsewhere) {
      cursor = 0;
      get("grid").scrollTop = 0;
    }
    cursor = Math.min(cursor, Math.max(items.length - 1, 0));
    drawGrid(true);
    seen = { picked, place };
  }
  drawView();
  if (img !== undefined && rowNow() < 0) say(`There is no image “${img}” in this folder.`);
};
// How many boxes of each state there are, whatever is chosen.
const countsNow = () => {
  const n = new Float64Array(STATE_OF.length), counts = { missed: 0, false: 0, found: 0 };
  codesAt(stepNow).forEach((code, place) => { n[code] += store.pixels?.[place] ?? 1; });
  STATE_OF.forEach((state, code) => { if (state in counts) counts[state] += n[code]; });
  return counts;
};
const named = ([name, value, title]) => el("span", { title }, small(`${name} `), el("b", { text: value }));
const drawBar = () => {
  const { missed, false: wrong, found } = countsNow(), { boxed } = about.shapes, slider = get("score");
  const [p, r, f1] = [ratio(found, found + wrong), ratio(found, found + missed), ratio(2 * found, 2 * found + wrong + missed)];
  slider.value = stepNow;
  write(get("at"), about.steps[stepNow]);
  slider.ariaValueText = `${about.steps[stepNow]}: precision ${p}, recall ${r}, F1 ${f1}`;
  get("counts").replaceChildren(...[["precision", p], ["recall", r], ["F1", f1], ["TP", count(found)], ["FP", count(wrong)], ["FN", count(missed)]].map(named));
  get("metrics").replaceChildren(...about.metrics.map(named),
    small(about.about),
    boxed ? small(boxesIn(boxed, "shape is drawn by its box", "shapes are drawn by their boxes")) : "");
  renew(get("models"), ...(models.length > 1 ? models.map(({ key, about: { name } }) => buttonOf(key, name, () => put({ ...chosen, model: key }), { "aria-pressed": model.key === key })) : []));
};
const say = text => {
  write(get("live"), text);
  write(get("said"), text);
  get("said").hidden = false;
  setTimeout(() => { get("said").hidden = true; }, 6000);
};
const go = by => rowNow() < 0 ? move(by) : step(by);
const KEYBOARD = {
  j: () => go(1), k: () => go(-1), ArrowRight: () => go(1), ArrowLeft: () => go(-1),
  ArrowDown: () => rowNow() < 0 && move(columns), ArrowUp: () => rowNow() < 0 && move(-columns),
  Enter: () => tiles.get(cursor)?.click(), f: nextFailure, Escape: () => rowNow() < 0 ? clear() : closeImage(),
  b: () => showAs(!isTiled()),
  m: () => rival() && put({ ...chosen, model: rival().key }),
  w: () => { document.body.classList.toggle("wide"); drawGrid(true); }, a: () => judgeNow("accepted"), x: () => judgeNow("rejected"), "/": () => get("find").focus(), "?": () => get("help").showModal(),
};
const VIEW_KEYS = {
  g: () => flip("objects"), p: () => flip("false"), t: () => flip("found"), "+": () => zoomBy(1 / 1.3), "-": () => zoomBy(1.3), 0: zoomOut,
};
const onKey = event => {
  const { key, target } = event, keys = stages.length ? { ...KEYBOARD, ...VIEW_KEYS } : KEYBOARD;
  if (event.ctrlKey || event.metaKey || event.altKey || all("dialog[open]")[0]) return;
  if (target.matches("input, select")) return key === "Escape" && target.blur();
  if (key.startsWith("Arrow") && target.closest("#panel, #reasons, header, #tools") || key === "Enter" && target !== get("grid") || !Object.hasOwn(keys, key)) return;
  event.preventDefault();
  keys[key]();
};
const start = async () => {
  try {
    head = await load("head");
    models = await Promise.all(head.models.map(async key => {
      const content = await load(key);
      about = content;
      const columns = await readColumns(content);
      return { key, about: content, store: columns, rowOf: new Map(columns.names.map((name, row) => [name, row])) };
    }));
  } catch (name) {
    get("main").replaceChildren(el("p", { class: "torn", text: `${typeof name === "string" ? name : "The data of this page"} cannot be read. Keep this folder together, and unpack it first.` }));
    throw name;
  }
  for (const other of models) other.store.sameOrder = other.store.names.every((name, row) => name === models[0].store.names[row]);
  use(models[0]);
  ({ review } = about);
  get("score").max = about.steps.length - 1;
  get("grid").classList.toggle("plain", !head.thumbs && !head.pictures.some(Boolean));
  on(get("score"), "input", event => put({ ...chosen, score: about.steps[event.target.value] }));
  for (const button of all("[data-show]")) on(button, "click", () => showAs(button.dataset.show === "boxes"));
  on(get("sort"), "change", ({ target }) => put({ ...without("sort"), ...(target.value === "most" ? {} : { sort: target.value }) }));
  for (const link of all("[data-to]")) on(link, "click", event => { event.preventDefault(); get(link.dataset.to).scrollIntoView(); get(link.dataset.to).focus({ preventScroll: true }); });
  on(get("csv"), "click", () => saveAs("boxes.csv", boxRows(selection.marks)));
  on(get("keys"), "click", KEYBOARD["?"]);
  get("grid").addEventListener("scroll", () => drawGrid(), { passive: true });
  on(get("grid"), "focus blur", () => drawGrid());
  on(window, "resize", () => { drawGrid(true); placeTags(); });
  on(window, "popstate", () => { chosen = readAddress(); renderSoon(); });
  on(document, "keydown", onKey);
  render();
  // On a phone it lies below the left side.
  if (rowNow() >= 0) get("images").scrollIntoView();
  document.documentElement.dataset.boxes = "there";
};
start();
