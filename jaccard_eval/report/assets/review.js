// Verdicts on suspected labels: two buttons in each row and beside each enlarged box. They are kept as long as the tab is
// open, by what a suspect says, and saved as the list that --reviewed reads.
const review = dataOf("review"), saidOf = i => review.rows[i].join("\t");
let kept = new Map();
try {
  kept = new Map(JSON.parse(sessionStorage.getItem("reviewed") ?? "[]"));
} catch {
  // Where nothing may be stored, the page alone remembers.
}
const showVerdicts = () => {
  for (const button of all("[data-verdict]")) button.ariaPressed = kept.get(saidOf(button.dataset.suspect)) === button.dataset.verdict;
  const verdicts = review.rows.map((_, i) => kept.get(saidOf(i))), n = verdict => verdicts.filter(given => given === verdict).length;
  const [accepted, rejected] = [n("accepted"), n("rejected")], section = all("#review")[0];
  write(section.querySelector("[role=status]"), `${count(accepted)} accepted, ${count(rejected)} rejected of ${boxesIn(verdicts.length, "suspect", "suspects")}`);
  section.querySelector(".save").disabled = !accepted && !rejected;
};
const judge = (i, verdict) => {
  const said = saidOf(i);
  kept.get(said) === verdict ? kept.delete(said) : kept.set(said, verdict);
  try {
    sessionStorage.setItem("reviewed", JSON.stringify([...kept]));
  } catch {
    // As above.
  }
  showVerdicts();
};
// Their words are of the style sheet: a table says the same with and without them.
function addVerdicts(parent, i) {
  if (!review) return;
  const [kind, image, name] = review.rows[i];
  for (const [verdict, word] of [["accepted", "Accept"], ["rejected", "Reject"]]) {
    const label = `${word} ${kind} ${name} in ${image}`, said = { type: "button", "data-suspect": i, "data-verdict": verdict };
    on(add(parent, "button", "", { ...said, "aria-label": label }), "click", () => judge(i, verdict));
  }
}
if (review) {
  const section = all("#review")[0];
  add(section, "p", "", { role: "status", class: "no-print" });
  saves(section, "Save reviewed.csv", "reviewed.csv", () => [review.columns, ...review.rows.flatMap((row, i) => {
    const verdict = kept.get(saidOf(i));
    return verdict ? [[...row, verdict]] : [];
  })]);
  for (const row of all("tr[data-key^=suspect-]")) addVerdicts(add(row, "td", "", { class: "drawn verdict no-print" }), row.dataset.key.slice(8));
  for (const table of new Set(all(".verdict").map(cell => cell.closest("table")))) add(table.rows[0], "td", "", { class: "drawn no-print" });
  showVerdicts();
}
