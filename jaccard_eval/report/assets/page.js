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
// As Python writes it, half to even; 0 and 1 only where exact.
const ratio = (part, whole) => {
  const exact = part / whole * 1e4, near = Math.round(exact), even = near - (near - exact === .5 && near % 2);
  return !whole ? "n/a" : ((part && part < whole ? Math.min(Math.max(even, 1), 9999) : even) / 1e4).toFixed(4);
};
