"use strict";
document.documentElement.classList.add("has-script");
for (const button of document.querySelectorAll("[data-copies]")) {
  const source = document.getElementById(button.dataset.copies);
  button.addEventListener("click", () => {
    getSelection().selectAllChildren(source);
    document.execCommand("copy");
    button.textContent = "Copied";
  });
}
