// Verdicts and notes on suspected labels, kept by what a suspect says, for all pages that list it, and saved for --reviewed.
let review = null, kept = new Map();
review = dataOf("review");
const readKept = () => {
  try {
    kept = new Map(JSON.parse(localStorage.getItem("verdicts") ?? "[]"));
  } catch {
    // The page alone remembers.
  }
};
const saidOf = i => review.rows[i].join("\t"), opinionOf = i => kept.get(saidOf(i)) ?? ["", ""];
const showVerdicts = () => {
  const opinions = review.rows.map((_, i) => opinionOf(i)), n = verdict => opinions.filter(([given]) => given === verdict).length;
  for (const button of all("[data-verdict]")) button.ariaPressed = opinions[button.dataset.suspect][0] === button.dataset.verdict;
  for (const field of all("[data-note]")) if (field !== document.activeElement) field.value = opinions[field.dataset.note][1];
  const [accepted, rejected] = [n("accepted"), n("rejected")], section = all("#review")[0];
  write(section.querySelector("[role=status]"), `${count(accepted)} accepted, ${count(rejected)} rejected of ${boxesIn(opinions.length, "suspect", "suspects")}`);
  section.querySelector(".save").disabled = !accepted && !rejected;
};
const keep = (i, ...opinion) => {
  readKept();
  opinion.some(Boolean) ? kept.set(saidOf(i), opinion) : kept.delete(saidOf(i));
  try {
    localStorage.setItem("verdicts", JSON.stringify([...kept]));
  } catch {
    // As above.
  }
  showVerdicts();
};
const judge = (i, verdict) => keep(i, opinionOf(i)[0] === verdict ? "" : verdict, opinionOf(i)[1]);
const reviewedRows = () => [review.columns, ...review.rows.map((row, i) => [...row, ...opinionOf(i)]).filter(row => row.at(-1) || row.at(-2))];
// The style sheet has their words: a table says the same without them.
function addVerdicts(parent, i, isNoted) {
  if (!review) return;
  const [kind, image, name] = review.rows[i], what = `${kind} ${name} in ${image}`;
  for (const [verdict, word] of [["accepted", "Accept"], ["rejected", "Reject"]]) {
    const said = { type: "button", "data-suspect": i, "data-verdict": verdict };
    on(add(parent, "button", "", { ...said, "aria-label": `${word} ${what}` }), "click", () => judge(i, verdict));
  }
  if (isNoted) on(add(parent, "input", "", { "data-note": i, placeholder: "Note", "aria-label": `Note on ${what}` }), "change", ({ target }) => keep(i, opinionOf(i)[0], target.value.trim()));
}
readKept();
on(window, "storage", () => {
  readKept();
  if (review) showVerdicts();
});
