// What follows the score, the picked class and the chosen cell. Without script all stands at the start.
// Numbers are sorted from the highest, words from A; what is undefined comes last.
for (const table of all("table.sortable")) {
  const heads = [...table.rows[0].cells], body = table.tBodies[0];
  if (body.rows.length > 1) heads.forEach((head, column) => head.textContent && press(head, () => {
    const isText = /text|name|path|word/.test(head.className), was = head.ariaSort, up = was ? was !== "ascending" : isText;
    const valueOf = row => isText ? row.cells[column].textContent : parseFloat(row.cells[column].textContent.replace(/,/g, ""));
    for (const other of heads) other.ariaSort = null;
    head.ariaSort = up ? "ascending" : "descending";
    body.append(...[...body.rows].sort((a, b) => {
      const [x, y] = [a, b].map(valueOf);
      return (x !== x) - (y !== y) || (up ? 1 : -1) * (x < y ? -1 : x > y);
    }));
  }));
}

// A class is picked in the table or at its curve; with a cell of the matrix, it decides which images show.
const rows = all("#classes tbody tr");
const names = Object.fromEntries(rows.map(row => [row.dataset.key, row.cells[0].textContent]));
let picked = null, tellCurves = () => {};
const showPicked = () => {
  picked = rows.find(row => names[row.dataset.key] === chosen.class)?.dataset.key ?? null;
  for (const element of all("[data-key]")) {
    element.classList.toggle("picked", element.dataset.key === picked);
    if (element.matches("path.picked")) element.parentElement.append(element);
  }
  for (const row of rows) row.querySelector("button").ariaPressed = row.dataset.key === picked;
  for (const legend of all("#curves .legend:has(.faint)")) {
    const line = legend.querySelector(".own") ?? add(legend, "li", "", { class: "own c4" });
    line.hidden = picked === null;
    write(line, names[picked] ?? "");
  }
  tellCurves();
};
const pick = key => choose({ class: names[key] });
for (const row of rows) press(row.cells[0], () => pick(row.dataset.key), { "aria-pressed": false });
for (const path of all("path[data-key]")) on(path, "click", () => pick(path.dataset.key));
on(document, "chosen", showPicked);
if (rows.length) on(add(option(rows[0].closest("table"), "Filter classes"), "input", "", { type: "search" }), "input", event => {
  for (const row of rows) row.hidden = !names[row.dataset.key].toLowerCase().includes(event.target.value.toLowerCase());
});

// Counts are letters of five bits: how many zeros, then a count, which is what gets lost at the step.
const unpack = (text, steps, rows) => {
  const counts = new Int32Array(rows * steps), numbers = [0];
  let bits = 0, place = -1;
  for (const letter of text) {
    const value = letter.charCodeAt() - 63;
    numbers[numbers.length - 1] += value % 32 * 2 ** bits;
    bits = value > 31 ? bits + 5 : 0;
    if (!bits) numbers.push(0);
  }
  for (let i = 0; i < numbers.length - 1; i += 2) counts[place += numbers[i] + 1] = numbers[i + 1];
  for (let i = counts.length - 1; i--;) if ((i + 1) % steps) counts[i] += counts[i + 1];
  return (row, step) => counts[row * steps + step];
};
const live = dataOf("score");
if (live) {
  const { scores, keys, positives, start, shown } = live, steps = scores.length, size = shown.length + 2;
  const [tp, fp] = [live.tp, live.fp].map(text => unpack(text, steps, positives.length));
  const cells = unpack(live.cells, steps, size * size), [slider] = all("#slider");
  const followers = all("[data-live]").map(element => {
    const key = element.closest("tr")?.dataset.key;
    return [element, element.dataset.live, key ? keys.indexOf(+key) + 1 || -1 : 0];
  }).filter(([element, , row]) => row >= 0 || element.classList.add("dim"));
  const lines = all(".matrix tbody tr").map(line => all("td", line));
  let step = start, shares = false;

  const show = () => {
    const points = positives.map((all, row) => {
      const right = tp(row, step), wrong = fp(row, step), f1 = ratio(2 * right, right + wrong + all);
      const [precision, recall] = [ratio(right, right + wrong), ratio(right, all)];
      return { score: scores[step], precision, recall, f1, tp: count(right), fp: count(wrong), fn: count(all - right) };
    }), { score, precision, recall, f1 } = points[0];
    for (const [element, name, row] of followers) write(element, points[row][name]);
    slider.ariaValueText = `${score}: precision ${precision}, recall ${recall}, F1 ${f1}`;
    // The place before the background is that of all classes without a row.
    lines.forEach((line, i) => {
      const counts = Array.from({ length: size }, (_, j) => cells((shown[i] >= 0 ? i : size - 1) * size + j, step));
      const found = counts.reduce((sum, n) => sum + n, 0), total = shown[i] ?? found;
      counts.splice(-2, 2, total - found);
      line.forEach((td, j) => {
        write(td, shares ? ratio(counts[j], total) : count(counts[j]));
        td.className = counts[j] ? `${i === j ? "hit " : ""}s${Math.min(9, Math.floor(10 * counts[j] / total))}` : "zero";
      });
    });
    stepNow = step;
    showChosen();
  };
  slider.disabled = false;
  const move = () => {
    const stop = Math.round(slider.value * 100);
    // A start between two stops is a step that is no stop.
    step = stop + (steps > 101 && stop >= start);
    show();
  };
  on(slider, "input", () => {
    move();
    chosen.score = scores[step];
    remember();
  });
  const follow = () => {
    const at = scores.indexOf(chosen.score);
    if (at < 0 || at === step) return;
    slider.value = steps > 101 && at > start ? (at - 1) / 100 : at / 100;
    step = at;
    show();
  };
  on(document, "chosen", follow);
  for (const table of all(".matrix")) {
    const check = (text, checked, change) => {
      const box = add(option(table, text), "input", "", { type: "checkbox" });
      on(box, "change", () => change(box.checked));
      change(box.checked = checked);
    };
    const isConfused = (_, i) => shown.some((_, j) => i !== j && cells(i * size + j, step) + cells(j * size + i, step));
    check("Only confused classes", shown.length > 10, only => {
      const off = i => only && shown.some(isConfused) && i in shown && !isConfused(0, i);
      for (const line of table.rows) {
        line.hidden = off(line.rowIndex - 1);
        for (const td of line.cells) td.hidden = off(td.cellIndex - 1);
      }
    });
    check("Shares of rows", false, on => {
      shares = on;
      show();
    });
    const chooseCell = ({ target }) => {
      if (!target.matches("td")) return;
      const [object, pred] = [target.parentElement, table.rows[0].cells[target.cellIndex]].map(of => names[of.dataset.key] ?? "");
      choose({ object, pred });
    };
    on(table, "click", chooseCell);
    // One cell is reached by the tab key, all others from there by arrows.
    table.role = "grid";
    lines[0][0].tabIndex = 0;
    on(table, "keydown", event => {
      const step = { Up: [-1, 0], Down: [1, 0], Left: [0, -1], Right: [0, 1] }[event.key.slice(5)];
      if (event.key === "Enter") chooseCell(event);
      if (!step) return;
      event.preventDefault();
      let next = event.target;
      do next = table.rows[next.parentElement.rowIndex + step[0]]?.cells[next.cellIndex + step[1]];
      while (next?.offsetParent === null);
      if (!next?.matches("td")) return;
      event.target.tabIndex = -1;
      next.tabIndex = 0;
      next.focus();
    });
  }
  show();
  follow();
}

// Curves are read by pointer or arrow keys: recall, precision, and the score that reaches it.
const curves = dataOf("curves");
curves?.charts.forEach((chart, place) => {
  const { left, top, width, height, high, points } = curves, svg = all("#curves svg")[place], figure = svg.closest("figure");
  const [precision, reached] = [chart.precision, chart.reached].map(text => unpack(text, points, chart.keys.length + 1));
  const told = add(figure, "output", "Point at the curve, or use the arrow keys."), line = svg.querySelector("path").cloneNode();
  let at = 0;
  const tell = to => {
    at = Math.max(0, Math.min(points - 1, to));
    const row = chart.keys.indexOf(+picked) + 1, value = precision(row, at) / 1e4, recall = at / (points - 1);
    line.setAttribute("class", "pointer");
    line.setAttribute("d", `M${left + recall * width} ${top}v${height}m-5 ${-height * value / high}h10`);
    svg.append(line);
    const score = chart.reached && value && (row || !chart.keys.length) ? `, score ${live.scores[reached(row, at)]}` : "";
    write(told, `${row ? names[picked] : chart.keys.length ? "Mean" : names[0]}: recall ${recall.toFixed(3)}, precision ${value.toFixed(4)}${score}`);
  };
  on(svg, "pointermove", ({ clientX }) => {
    const box = svg.getBoundingClientRect(), x = (clientX - box.left) / box.width * svg.viewBox.baseVal.width;
    tell(Math.round((x - left) / width * (points - 1)));
  });
  figure.tabIndex = 0;
  on(figure, "keydown", ({ key }) => /^Arrow[LR]/.test(key) && tell(key === "ArrowLeft" ? at - 1 : at + 1));
  const before = tellCurves;
  tellCurves = () => (before(), line.isConnected && tell(at));
});
if (isNarrowed()) showPicked();
for (const button of all("[data-copies]")) on(button, "click", () => {
  getSelection().selectAllChildren(document.getElementById(button.dataset.copies));
  document.execCommand("copy");
  write(button, "Copied");
});
