// Columns of all boxes, as features/images/columns.py writes them: what became of each at a step of the score, which
// are chosen, and why each is right or wrong. Objects come first; a box is known by its place among all.
const about = dataOf("boxes");
const KINDS = ["class", "box", "both", "double", "background", "found", "ignored"], SIZES = ["", "small", "medium", "large"];
const NEAR = .1, SURE = .8; // least overlap of what is near, and score from which a label may be missing
let store = null, stepNow = dataOf("score")?.start ?? 0;

const readColumns = async ({ text, layout }) => {
  const packed = Uint8Array.from(atob(text), letter => letter.charCodeAt(0));
  const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("deflate"));
  const bytes = new Uint8Array(await new Response(stream).arrayBuffer()), columns = {};
  let at = 0;
  for (const [name, width, n] of layout) {
    const column = columns[name] = width === 1 ? bytes.subarray(at, at + n) : new (width === 2 ? Uint16Array : Uint32Array)(n);
    // The lowest bytes of all numbers come first.
    if (width === 1) at += n;
    else for (let byte = 0; byte < width; byte++) for (let i = 0; i < n; i++) column[i] |= bytes[at++] << 8 * byte;
  }
  const first = side => side.reduce((starts, n) => (starts.push(starts.at(-1) + n), starts), [0]);
  const objects = first(columns.objects), m = objects.at(-1), detections = first(columns.detections).map(place => place + m);
  const image = new Uint32Array(columns.label.length);
  for (const starts of [objects, detections]) for (let row = 0; row + 1 < starts.length; row++) image.fill(row, starts[row], starts[row + 1]);
  const listed = column => column && JSON.parse(new TextDecoder().decode(column)), names = listed(columns.names);
  // Of an image without a thumbnail, its file beside the page.
  const files = about.pictures ? listed(columns.files) ?? names.map(name => name.split("/").map(encodeURIComponent).join("/")) : [];
  return { ...columns, names, files, m, image, firstObject: objects, firstDetection: detections };
};

// "missed", "false", "found", "ignored", or "" for what does not show: detections below the score, objects that are found.
const stateOf = (place, step = stepNow) => {
  const { m, ignored, kind } = store, reached = store.step[place] > step;
  if (place < m) return ignored[place] ? "ignored" : reached ? "" : "missed";
  const name = KINDS[kind[place - m]];
  return !reached ? "" : name === "found" || name === "ignored" ? name : "false";
};
const places = row => {
  const { firstObject: a, firstDetection: b } = store, span = (from, to) => Array.from({ length: to - from }, (_, i) => from + i);
  return [...span(a[row], a[row + 1]), ...span(b[row], b[row + 1])];
};
const scoreOf = place => about.scores[0] + store.score[place] * about.scores[1];
const sideOf = place => {
  const [low, unit, isShare] = about.boxes, { x, y, w, h, image, width, height } = store, row = image[place];
  const [across, down] = isShare ? [width[row], height[row]] : [1, 1];
  return [(low + x[place] / unit) * across, (low + y[place] / unit) * down, w[place] / unit * across, h[place] / unit * down];
};

// The boxes of a choice at a step: a mark for each, how many of each state, and how many wrong ones and all of each image.
const select = (choice, step = stepNow) => {
  const { m, image, label, size, score, ignored, seen, kind, as } = store, { class: name, object, pred, error, sure, slice, suspect } = choice;
  const named = wanted => wanted === undefined || about.classes.map(own => own === wanted);
  const own = named(name), of = named(object), to = named(pred), part = slice !== undefined && store[`slice ${about.slices.indexOf(slice)}`];
  const isCell = object !== undefined, least = sure === undefined ? 0 : Math.round((sure - about.scores[0]) / about.scores[1]), n = label.length;
  const marks = new Uint8Array(n), counts = { missed: 0, false: 0, found: 0 }, wrong = new Uint32Array(store.names.length), all = new Uint32Array(store.names.length);
  const listed = suspect !== undefined && new Set(about.suspects.map(([kind, place], i) => suspect === kind || suspect === `${i}` ? place : -1));
  const inCell = place => {
    if (place < m) return pred === "" && of[label[place]] && !ignored[place] && seen[place] <= step;
    // What it matches of any class: its own, nothing, none that counts, or another one.
    const matched = as[place - m];
    return store.step[place] > step && to[label[place]] && (object === "" ? matched === 1 : of[matched ? matched - 3 : label[place]]);
  };
  for (let place = 0; place < n; place++) {
    if (own !== true && !own[label[place]] || choice.size && SIZES[size[place]] !== choice.size || part === undefined || part && !part[image[place]]) continue;
    const state = stateOf(place, step);
    if (isCell ? !inCell(place) : listed ? !listed.has(place) : !(state in counts)) continue;
    if (sure !== undefined && (state !== "false" || score[place] < least)) continue;
    if (error && error !== state && !(state === "false" && KINDS[kind[place - m]] === error)) continue;
    marks[place] = 1;
    counts[state] = (counts[state] ?? 0) + 1;
    all[image[place]]++;
    if (state === "missed" || state === "false") wrong[image[place]]++;
  }
  return { marks, counts, wrong, all };
};

const down = value => (Math.floor(value * 100 + 1e-9) / 100).toFixed(2);
const overlap = (a, b) => {
  const [[x, y, w, h], [u, v, k, l]] = [sideOf(a), sideOf(b)];
  const common = Math.max(Math.min(x + w, u + k) - Math.max(x, u), 0) * Math.max(Math.min(y + h, v + l) - Math.max(y, v), 0);
  return common / (w * h + k * l - common) || 0;
};
// Shapes have an overlap of their own, which is known of a detection and the object that decided on its kind.
const by = (value, isKnown = about.exact) => isKnown ? `${about.measure} ${down(value)}` : "";
const listed = (...words) => words.filter(Boolean).join(", ");
const whyFalse = place => {
  const { m, kind, near, iou, image, firstObject, label } = store, row = place - m, at = by(iou[row] / 200, true);
  const of = near[row] ? about.classes[label[firstObject[image[place]] + near[row] - 1]] : "";
  return { class: `wrong class: is ${of}, ${at}`, box: `box is off: ${at}`, both: `near ${of}, ${at}`, double: "duplicate of a surer box",
    background: scoreOf(place) >= SURE ? "on nothing: label missing?" : "on nothing" }[KINDS[kind[row]]] ?? "";
};
const whyMissed = place => {
  const { m, step, label, near, iou, kind, image, firstObject, firstDetection } = store, row = image[place];
  if (step[place]) return `only at ${down(scoreOf(place))}, below the score`;
  let taken = -1, own = [0, -1], other = [0, -1];
  for (let at = firstDetection[row]; at < firstDetection[row + 1]; at++) {
    if (step[at] <= stepNow) continue;
    const value = near[at - m] === place - firstObject[row] + 1 ? iou[at - m] / 200 : overlap(place, at);
    if (value < NEAR) continue;
    if (label[at] === label[place]) own = value > own[0] ? [value, at] : own;
    else {
      if (value >= about.iou && KINDS[kind[at - m]] !== "found" && (taken < 0 || scoreOf(at) > scoreOf(taken))) taken = at;
      other = value > other[0] ? [value, at] : other;
    }
  }
  if (taken >= 0) return `detected as ${about.classes[label[taken]]} at ${down(scoreOf(taken))}`;
  if (own[0]) return `best box${about.exact ? " has" : " is off"} ${by(own[0])}`.trim();
  return other[0] ? `nearest: ${listed(about.classes[label[other[1]]], by(other[0]))}` : "nothing near";
};
const whyOf = place => ({ false: whyFalse, missed: whyMissed })[stateOf(place)]?.(place) ?? "";
