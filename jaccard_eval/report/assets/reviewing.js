// A review on the page in one file: two buttons in each row, and the list to be saved.
if (review) {
  const section = all("#review")[0];
  add(section, "p", "", { role: "status", class: "no-print" });
  saves(section, "Save reviewed.csv", "reviewed.csv", reviewedRows);
  for (const row of all("tr[data-key^=suspect-]")) addVerdicts(add(row, "td", "", { class: "drawn verdict no-print" }), row.dataset.key.slice(8));
  for (const table of new Set(all(".verdict").map(cell => cell.closest("table")))) add(table.rows[0], "td", "", { class: "drawn no-print" });
  showVerdicts();
}
