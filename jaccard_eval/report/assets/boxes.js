// Columns of all boxes, as features/images/columns.py writes them: what became of each at a step of the score, which
// are chosen, and why each is right or wrong. Objects come first; a box is known by its place among all.
// What can become of a box, by a number: detections as their column has it, then the state that is not shown, objects
// that are found or ignored, and why others are missed.
const KINDS = ["class", "box", "both", "double", "background", "found", "ignored", "", "", "ignored", "nothing", "below", "off", "taken"];
const STATE_OF = ["false", "false", "false", "false", "false", "found", "ignored", "", "", "ignored", "missed", "missed", "missed", "missed"];
const OUT = 7, SEEN = 8, CROWD = 9, NOTHING = 10, BELOW = 11, OFF = 12, TAKEN = 13;
const SIZES = ["", "small", "medium", "large"];
const NEAR = .1, SURE = .8; // least overlap of what is near, and score from which a label may be missing
let about = null, store = null, stepNow = dataOf("score")?.start ?? 0;
about = dataOf("boxes");

const startsOf = counts => counts.reduce((starts, n) => (starts.push(starts.at(-1) + n), starts), [0]);
const readColumns = async ({ text, layout }) => {
  const packed = Uint8Array.fromBase64?.(text) ?? Uint8Array.from(atob(text), letter => letter.charCodeAt(0));
  const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("deflate"));
  const bytes = new Uint8Array(await new Response(stream).arrayBuffer()), columns = {};
  let at = 0;
  for (const [name, width, n] of layout) {
    const column = columns[name] = width === 1 ? bytes.subarray(at, at + n) : new (width === 2 ? Uint16Array : Uint32Array)(n);
    // The lowest bytes of all numbers come first.
    if (width === 1) at += n;
    else for (let byte = 0; byte < width; byte++) for (let i = 0; i < n; i++) column[i] |= bytes[at++] << 8 * byte;
  }
  const objects = startsOf(columns.objects), m = objects.at(-1), detections = startsOf(columns.detections).map(place => place + m);
  const image = new Uint32Array(columns.label.length);
  for (const starts of [objects, detections]) for (let row = 0; row + 1 < starts.length; row++) image.fill(row, starts[row], starts[row + 1]);
  const listed = column => column && JSON.parse(new TextDecoder().decode(column)), names = listed(columns.names);
  // Of an image without a thumbnail, its file beside the page.
  const files = about.pictures ? listed(columns.files) ?? names.map(name => name.split("/").map(encodeURIComponent).join("/")) : [];
  return { ...columns, names, files, captions: listed(columns.captions), m, image, firstObject: objects, firstDetection: detections };
};

// The number of a box at a step. Which detections explain a miss is known: a better one looks at no worse one.
const partner = (place, column) => column[place] && store.firstDetection[store.image[place]] + column[place] - 1;
const codeOf = (place, at = stepNow) => {
  const { m, step, ignored, kind, taken, beside } = store, reached = step[place] > at;
  if (place >= m) return reached ? kind[place - m] : OUT;
  if (ignored[place]) return CROWD;
  if (reached || step[place]) return reached ? SEEN : BELOW;
  return step[partner(place, taken)] > at && taken[place] ? TAKEN : step[partner(place, beside)] > at && beside[place] ? OFF : NOTHING;
};
// "missed", "false", "found", "ignored", or "" for what does not show: detections below the score, objects that are found.
const stateOf = (place, at = stepNow) => STATE_OF[codeOf(place, at)], lookOf = place => stateOf(place) || "found";
const codesAt = at => {
  if (store.codesAt !== at) {
    store.codes = Uint8Array.from({ length: store.label.length }, (_, place) => codeOf(place, at));
    store.codesAt = at;
  }
  return store.codes;
};
const places = row => {
  const { firstObject: a, firstDetection: b } = store, span = (from, to) => Array.from({ length: to - from }, (_, i) => from + i);
  return [...span(a[row], a[row + 1]), ...span(b[row], b[row + 1])];
};
const scoreOf = place => about.scores[0] + store.score[place] * about.scores[1];
const pointOf = (place, x, y) => {
  const [low, unit, isShare] = about.boxes, { image, width, height } = store, row = image[place];
  return [(low + x / unit) * (isShare ? width[row] : 1), (low + y / unit) * (isShare ? height[row] : 1)];
};
const sideOf = place => {
  const { x, y, w, h } = store, [left, top] = pointOf(place, x[place], y[place]), [right, bottom] = pointOf(place, x[place] + w[place], y[place] + h[place]);
  return [left, top, right - left, bottom - top];
};

// The boxes of a choice at a step: a mark for each, how many of each state, and how many wrong ones and all of each
// image. The tallies are of what is still to be chosen: each leaves out the choice that it would take the place of, so
// that it counts what choosing it would select. `others` are the codes of another model, of which the same objects count.
const select = (choice, at = stepNow, others = null) => {
  const { m, image, label, size, score, seen, step, as, near, pixels, firstObject } = store, { class: name, object, pred, error, sure, slice, suspect, change } = choice;
  const codes = codesAt(at), named = wanted => about.classes.map(own => own === wanted), n = label.length, k = about.classes.length;
  const own = name === undefined ? null : named(name), of = named(object), to = named(pred), isCell = object !== undefined;
  const parts = about.slices.map((_, i) => store[`slice ${i}`]), part = slice === undefined ? null : parts[about.slices.indexOf(slice)] ?? [];
  const least = sure === undefined ? 0 : Math.round((sure - about.scores[0]) / about.scores[1]), sized = choice.size ? SIZES.indexOf(choice.size) : 0;
  const listed = suspect !== undefined && new Set(about.suspects.map(([kind, place], i) => suspect === kind || suspect === `${i}` ? place : -1)), kindsOf = new Map();
  for (const [kind, place] of about.suspects) kindsOf.set(place, new Set(kindsOf.get(place)).add(kind));
  const takes = STATE_OF.map((state, code) => error === undefined ? state !== "" && state !== "ignored" : error === "wrong" ? state === "false" || state === "missed" : error === state || error === KINDS[code] && code !== CROWD);
  const marks = new Uint8Array(n), passed = new Uint8Array(n), counts = { missed: 0, false: 0, found: 0 }, wrong = new Float64Array(store.names.length), all = new Float64Array(store.names.length), tally = size => new Float64Array(size);
  const tallies = { kinds: tally(STATE_OF.length), missed: tally(k), false: tally(k), sizes: tally(4), slices: tally(parts.length), won: 0, lost: 0, suspects: Object.fromEntries(about.suspects.map(([kind]) => [kind, 0])), cells: tally((k + 1) ** 2) };
  for (let place = 0; place < n; place++) {
    const code = codes[place], isObject = place < m, state = STATE_OF[code], row = label[place], more = pixels ? pixels[place] : 1;
    const isOther = own !== null && !own[row], isSize = !sized || size[place] === sized, isPart = part === null || part[image[place]];
    if (!isSize && !isPart) continue;
    // What it matches of any class: its own, nothing, none that counts, or another one.
    const matched = isObject ? 0 : as[place - m], inMatrix = isObject ? code !== CROWD && seen[place] <= at : step[place] > at && matched !== 2;
    const from = isObject ? row : matched === 1 ? k : matched ? matched - 3 : row, to_ = isObject ? k : row;
    if (inMatrix && isSize && isPart) tallies.cells[from * (k + 1) + to_] += more;
    const inCell = isCell && inMatrix && (from === k ? object === "" : of[from]) && (to_ === k ? pred === "" : to[to_]);
    const counted = state in counts, isSure = sure === undefined || state === "false" && score[place] >= least;
    const turned = others && isObject && code !== CROWD && (code === SEEN) !== (others[place] === SEEN) ? code === SEEN ? "won" : "lost" : "";
    const isKind = counted && takes[code] && isSure, isWhat = change ? turned === change : listed ? listed.has(place) && isSure : isKind;
    if (!isOther && isSize && isPart) {
      if (counted && isSure) tallies.kinds[code] += more;
      if (turned) tallies[turned]++;
      if (isSure && kindsOf.has(place)) for (const kind of kindsOf.get(place)) tallies.suspects[kind]++;
    }
    if (isWhat && isSize && isPart && (listed || state === "false" || isObject)) tallies[isObject ? "missed" : "false"][row] += more;
    if (isOther || !(isCell ? inCell && isSure : listed ? listed.has(place) && isSure && (error === undefined || takes[code]) : isWhat)) continue;
    // Pixels of one class that are taken for another are missed and false: where both are chosen, they count once.
    passed[place] = 1;
    if (pixels && !isObject && near[place - m] && passed[firstObject[image[place]] + near[place - m] - 1]) continue;
    if (isPart) tallies.sizes[size[place]] += more;
    if (!isSize) continue;
    for (let i = 0; i < parts.length; i++) if (parts[i][image[place]]) tallies.slices[i] += more;
    if (!isPart) continue;
    marks[place] = 1;
    counts[state] = (counts[state] ?? 0) + more;
    all[image[place]] += more;
    if (state === "missed" || state === "false") wrong[image[place]] += more;
  }
  return { marks, counts, wrong, all, tallies };
};

const down = value => (Math.floor(value * 100 + 1e-9) / 100).toFixed(2);
const common = ([x, y, w, h], [u, v, k, l]) => Math.max(Math.min(x + w, u + k) - Math.max(x, u), 0) * Math.max(Math.min(y + h, v + l) - Math.max(y, v), 0);
const overlap = (a, b) => {
  const [one, other] = [sideOf(a), sideOf(b)], shared = common(one, other);
  return shared / (one[2] * one[3] + other[2] * other[3] - shared) || 0;
};
// Shapes have an overlap of their own, which is known of a detection and the object that decided on its kind.
const by = (value, isKnown = about.exact) => isKnown ? `${about.measure} ${down(value)}` : "";
const listed = (...words) => words.filter(Boolean).join(", ");
const whyFalse = place => {
  const { m, kind, near, iou, image, firstObject, label } = store, row = place - m, at = iou[row] ? by(iou[row] / 200, true) : "";
  const of = near[row] ? about.classes[label[firstObject[image[place]] + near[row] - 1]] : "";
  return { class: listed(`wrong class: is ${of}`, at), box: `${about.off}: ${at}`, both: `near ${of}, ${at}`, double: "duplicate of a surer box",
    background: scoreOf(place) >= SURE ? "on nothing: label missing?" : "on nothing" }[KINDS[kind[row]]] ?? "";
};
const whyMissed = place => {
  const { m, step, label, near, iou, taken, beside, image, firstObject, firstDetection } = store, row = image[place], code = codeOf(place);
  if (code === BELOW) return `only at ${down(scoreOf(place))}, below the score`;
  const surest = partner(place, code === TAKEN ? taken : beside);
  if (code === TAKEN) return `${about.verb} as ${about.classes[label[surest]]}` + (about.maps ? "" : ` at ${down(scoreOf(surest))}`);
  let [best, nearest] = [0, -1];
  for (let at = firstDetection[row]; !store.pixels && at < firstDetection[row + 1]; at++) {
    if (step[at] <= stepNow || code === OFF && label[at] !== label[place]) continue;
    const value = near[at - m] === place - firstObject[row] + 1 ? iou[at - m] / 200 : overlap(place, at);
    if (value > best) [best, nearest] = [value, at];
  }
  if (code === OFF) return best && about.exact ? `best box has ${by(best)}` : about.off;
  return best >= NEAR ? `nearest: ${listed(about.classes[label[nearest]], by(best))}` : about.nothing;
};
const whyOf = place => ({ false: whyFalse, missed: whyMissed })[stateOf(place)]?.(place) ?? "";
