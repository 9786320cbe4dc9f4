"use strict";
document.documentElement.classList.add("has-script");
const all = (selector, within = document) => [...within.querySelectorAll(selector)];
const dataOf = key => JSON.parse(all(`#live-${key}`)[0]?.textContent ?? "null");
const { format: count } = new Intl.NumberFormat("en");
const on = (element, names, act) => names.split(" ").forEach(name => element.addEventListener(name, act));
const write = (element, text) => element.textContent === text || (element.textContent = text);
const add = (parent, name, text, attributes) => {
  const made = document.createElement(name);
  made.textContent = text;
  for (const key in attributes) made.setAttribute(key, attributes[key]);
  parent.append(made);
  return made;
};
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
for (const button of all("[data-copies]")) on(button, "click", () => {
  getSelection().selectAllChildren(document.getElementById(button.dataset.copies));
  document.execCommand("copy");
  write(button, "Copied");
});
