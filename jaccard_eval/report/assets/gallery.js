// Images with boxes: tabs, boxes that follow the event "score" (its detail is the threshold), and one image enlarged.
for (const gallery of document.querySelectorAll(".gallery")) {
  const live = JSON.parse(document.getElementById("live-gallery").textContent);
  const items = [...gallery.querySelectorAll(".shots > li")], list = gallery.querySelector(".shots");
  const dialog = gallery.querySelector("dialog"), part = name => dialog.querySelector(".viewer-" + name);
  const words = { found: "found", false: "false positive", missed: "missed", ignored: "ignored" };
  const toggles = [...gallery.querySelectorAll("[data-shows]")];
  let shown = items, at = 0;

  const states = ["missed", "false", "found", "ignored"];
  const stateOf = box => states.find(state => box.classList.contains(state));
  const isOn = box => !box.classList.contains("off") && toggles.every(t => t.checked || !box.classList.contains(t.dataset.shows));
  const textOf = box => box.firstElementChild?.textContent ??
    live.names[box.dataset.c] + (box.classList.contains("object") ? "" : " " + (+box.dataset.s).toFixed(2)) + ", " + words[stateOf(box)];

  document.addEventListener("score", event => {
    for (const item of items) {
      const counts = {};
      for (const box of item.querySelectorAll("rect[data-c]")) {
        const reached = +(box.dataset.s ?? "NaN") >= event.detail;
        const on = box.classList.contains("object") ? !reached || box.classList.contains("ignored") : reached;
        box.classList.toggle("off", !on);
        if (on) counts[stateOf(box)] = (counts[stateOf(box)] ?? 0) + 1;
      }
      item.querySelector(".counts").textContent =
        `${counts.missed ?? 0} missed, ${counts.false ?? 0} false, ${counts.found ?? 0} found`;
    }
  });

  const buttons = [...gallery.querySelectorAll(".tabs button")];
  const pick = button => {
    for (const other of buttons) other.setAttribute("aria-pressed", String(other === button));
    const rows = button.dataset.rows.split(" ").map(Number);
    shown = rows.map(row => items[row]);
    list.replaceChildren(...shown);
  };
  for (const button of buttons) button.addEventListener("click", () => pick(button));
  if (buttons.length) pick(buttons[0]);

  const point = (box, svg) => {
    svg.querySelectorAll(".on").forEach(other => other.classList.remove("on"));
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
    const boxes = [...svg.querySelectorAll("rect[data-c]")].filter(isOn);
    boxes.sort((a, b) => states.indexOf(stateOf(a)) - states.indexOf(stateOf(b)) || (b.dataset.s ?? 9) - (a.dataset.s ?? 9));
    part("list").replaceChildren(...boxes.map(box => {
      const item = document.createElement("li"), button = document.createElement("button");
      button.type = "button";
      button.className = stateOf(box);
      button.textContent = textOf(box);
      for (const name of ["focus", "mouseenter"]) button.addEventListener(name, () => point(box, svg));
      box.addEventListener("mouseenter", () => point(box, svg));
      item.append(button);
      return item;
    }));
  };
  const open = item => {
    at = shown.indexOf(item);
    dialog.showModal();
    show(0);
  };
  for (const item of items) {
    const shot = item.querySelector(".shot");
    shot.tabIndex = 0;
    shot.setAttribute("role", "button");
    shot.setAttribute("aria-haspopup", "dialog");
    shot.addEventListener("click", () => open(item));
    shot.addEventListener("keydown", event => {
      if (event.key !== "Enter" && event.key !== " ") return;
      event.preventDefault();
      open(item);
    });
  }
  for (const button of dialog.querySelectorAll("[data-step]"))
    button.addEventListener("click", () => +button.dataset.step ? show(+button.dataset.step) : dialog.close());
  dialog.addEventListener("click", event => event.target === dialog && dialog.close());
  dialog.addEventListener("keydown", event => {
    const step = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
    if (step) show(step);
  });
}
