// Images with boxes: tabs, boxes that follow the event "score" (its detail is the threshold), and one image enlarged.
for (const gallery of all(".gallery")) {
  const { names } = dataOf("gallery"), items = all(".shots > li", gallery);
  const dialog = gallery.querySelector("dialog"), part = name => dialog.querySelector(".viewer-" + name);
  const toggles = all("[data-shows]", gallery);
  let shown = items, at = 0;

  const states = ["missed", "false", "found", "ignored"];
  const stateOf = box => states.find(state => is(box, state));
  const isOn = box => !is(box, "off") && toggles.every(t => t.checked || !is(box, t.dataset.shows));
  const textOf = box => box.firstElementChild?.textContent ??
    names[box.dataset.c] + (is(box, "object") ? "" : " " + (+box.dataset.s).toFixed(2)) + ", " + stateOf(box).replace("false", "false positive") + whyOf(box);
  // An object that a detection finds is missed above the score of that alone.
  const whyOf = box => is(box, "object") && box.dataset.s ? `: only at ${(Math.floor(box.dataset.s * 100) / 100).toFixed(2)}, below the score`
    : box.dataset.w && !is(box, "found") ? `: ${box.dataset.w}` : "";

  on(document, "score", event => {
    for (const item of items) {
      const counts = {};
      for (const box of all("[data-c]", item)) {
        const reached = +(box.dataset.s ?? "NaN") >= event.detail;
        const on = is(box, "object") ? !reached || is(box, "ignored") : reached;
        box.classList.toggle("off", !on);
        if (on) counts[stateOf(box)] = (counts[stateOf(box)] ?? 0) + 1;
      }
      const text = ["missed", "false", "found"].map(state => `${counts[state] ?? 0} ${state}`).join(", ");
      write(item.querySelector(".counts"), text);
    }
  });

  const buttons = all(".tabs button", gallery);
  const pick = button => {
    for (const other of buttons) other.ariaPressed = other === button;
    shown = button.dataset.rows.split(" ").map(row => items[row]);
    gallery.querySelector(".shots").replaceChildren(...shown);
  };
  for (const button of buttons) on(button, "click", () => pick(button));
  if (buttons.length) pick(buttons[0]);
  // What is chosen is looked for in all images, whatever the tab.
  const showAll = () => {
    for (const other of buttons) other.ariaPressed = false;
    shown = [...gallery.querySelectorAll(".shots > li")];
  };
  on(document, "ordered", showAll);
  on(document, "chosen", () => {
    if (!isNarrowed() || !chosenBar) return;
    gallery.querySelector(".shots").replaceChildren(...items);
    showAll();
  });

  const point = (box, svg) => {
    for (const other of all(".on", svg)) other.classList.remove("on");
    svg.querySelector(".tag")?.remove();
    if (!box) return;
    box.classList.add("on");
    const tag = document.createElementNS(svg.namespaceURI, "text"), view = svg.viewBox.baseVal;
    const scale = 1 / svg.getScreenCTM().a, { x, y, width, height } = box.getBBox();
    tag.setAttribute("class", "tag");
    tag.textContent = textOf(box);
    svg.append(tag);
    const long = tag.getComputedTextLength() * scale, left = Math.max(4 * scale, Math.min(x, view.width - long - 4 * scale));
    const top = y > 20 * scale ? y - 6 * scale : Math.min(y + height + 16 * scale, view.height - 4 * scale);
    tag.setAttribute("transform", `translate(${left} ${top}) scale(${scale})`);
  };
  const show = step => {
    do at = (at + step + shown.length) % shown.length;
    while (step && shown[at].hidden && shown.some(item => !item.hidden));
    const svg = shown[at].querySelector("svg").cloneNode(true);
    const [name, counts] = shown[at].querySelector("figcaption").children;
    part("top").firstElementChild.textContent = `${name.textContent}: ${counts.textContent}`;
    part("shot").replaceChildren(svg);
    const boxes = all("[data-c]", svg).filter(isOn);
    boxes.sort((a, b) => states.indexOf(stateOf(a)) - states.indexOf(stateOf(b)) || (b.dataset.s ?? 9) - (a.dataset.s ?? 9));
    part("list").replaceChildren();
    for (const box of boxes) {
      const button = add(add(part("list"), "li"), "button", textOf(box), { type: "button", class: stateOf(box) });
      on(button, "focus mouseenter", () => point(box, svg));
      on(box, "mouseenter", () => point(box, svg));
    }
  };
  const open = item => {
    at = shown.indexOf(item);
    dialog.showModal();
    show(0);
  };
  for (const item of items) {
    const shot = item.querySelector(".shot");
    Object.assign(shot, { tabIndex: 0, role: "button", ariaHasPopup: "dialog" });
    on(shot, "click", () => open(item));
    on(shot, "keydown", event => {
      if (event.key !== "Enter" && event.key !== " ") return;
      event.preventDefault();
      open(item);
    });
  }
  for (const button of all("[data-step]", dialog))
    on(button, "click", () => +button.dataset.step ? show(+button.dataset.step) : dialog.close());
  on(dialog, "click", event => event.target === dialog && dialog.close());
  on(dialog, "keydown", event => {
    const step = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
    if (step) show(step);
  });
}
