// Every page: values open their details on hover, focus and tap; chips of a drawing are reached with arrow keys.
"use strict";
(() => {
  document.documentElement.classList.add("js");
  let pinned = null, dismissed = null;

  function place(details) {
    const box = details.querySelector(".pop");
    const at = details.querySelector("summary").getBoundingClientRect();
    // Never over its value: a box that closes under the pointer would count as entering the value again.
    const under = innerHeight - at.bottom - 8, over = at.top - 8;
    box.style.maxHeight = "";
    const below = box.offsetHeight <= under || under >= over;
    box.style.maxHeight = `${Math.min(parseFloat(getComputedStyle(box).maxHeight), Math.max(under, over))}px`;
    box.style.left = `${Math.max(8, Math.min(at.left, innerWidth - box.offsetWidth - 12))}px`;
    box.style.top = `${below ? at.bottom + 4 : at.top - box.offsetHeight - 4}px`;
  }
  function show(details) {
    for (const other of document.querySelectorAll("details.val[open]")) if (other !== details) other.open = false;
    if (pinned !== details) pinned = null;
    if (details.fill) { details.fill(); details.fill = null; }
    details.open = true;
    place(details);
  }
  function hide() {
    for (const other of document.querySelectorAll("details.val[open]")) other.open = false;
    pinned = null;
  }
  const of = (node) => (node instanceof Element ? node.closest("details.val") : null);

  let timer = 0;
  document.addEventListener("pointerover", (event) => {
    if (event.pointerType !== "mouse" || pinned) return;
    const details = of(event.target);
    if (details !== dismissed) dismissed = null;
    clearTimeout(timer);
    // A short delay lets the pointer cross from the value to its details, and pass over values without opening them.
    if (details && !details.open && !dismissed) timer = setTimeout(() => show(details), 120);
    else if (!details && document.querySelector("details.val[open]")) timer = setTimeout(hide, 250);
  });
  document.addEventListener("click", (event) => {
    const summary = event.target instanceof Element ? event.target.closest("details.val > summary") : null;
    clearTimeout(timer);
    if (summary) {
      event.preventDefault();
      const details = summary.parentElement;
      if (details === pinned) hide();
      else { show(details); pinned = details; }
    } else if (!of(event.target)) hide();
  });
  document.addEventListener("focusin", (event) => {
    const details = of(event.target);
    if (!details) hide();
    else if (!details.open && event.target.matches(":focus-visible")) show(details);
  });
  document.addEventListener("keydown", (event) => {
    const open = document.querySelector("details.val[open]");
    if (event.key === "Escape" && open) {
      if (open.contains(document.activeElement)) open.querySelector("summary").focus();
      dismissed = open;
      hide();
    }
  });
  addEventListener("scroll", (event) => {
    const open = document.querySelector("details.val[open]");
    if (open && !open.querySelector(".pop").contains(event.target)) place(open);
  }, true);
  addEventListener("resize", () => {
    const open = document.querySelector("details.val[open]");
    if (open) place(open);
  });

  for (const svg of document.querySelectorAll("figure.topology svg")) {
    const chips = [...svg.querySelectorAll("rect.chip")];
    if (!chips.length) continue;
    svg.setAttribute("role", "group");
    const numbers = new Map([...svg.querySelectorAll("text.number")].map((text) => [text, text.getBoundingClientRect()]));
    const middle = (box) => [(box.left + box.right) / 2, (box.top + box.bottom) / 2];
    chips.forEach((chip, index) => {
      const box = chip.getBoundingClientRect();
      const inside = [...numbers].find(([, b]) => middle(b)[0] > box.left && middle(b)[0] < box.right && middle(b)[1] > box.top && middle(b)[1] < box.bottom);
      chip.setAttribute("tabindex", index ? "-1" : "0");
      chip.setAttribute("role", "img");
      chip.setAttribute("aria-label", `chip ${inside ? inside[0].textContent : index} of ${chips.length}`);
    });
    svg.addEventListener("keydown", (event) => {
      const step = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] }[event.key];
      const from = event.target;
      if (!step || !chips.includes(from)) return;
      event.preventDefault();
      const [x, y] = middle(from.getBoundingClientRect());
      let best = null, wrap = null;
      for (const chip of chips) {
        if (chip === from) continue;
        const [a, b] = middle(chip.getBoundingClientRect());
        const along = (a - x) * step[0] + (b - y) * step[1];
        const across = Math.abs((a - x) * step[1]) + Math.abs((b - y) * step[0]);
        if (along > 1 && (!best || along + 3 * across < best[0])) best = [along + 3 * across, chip];
        if (along < -1 && (!wrap || along + 3 * across < wrap[0])) wrap = [along + 3 * across, chip];
      }
      const to = (best || wrap || [0, from])[1];
      from.setAttribute("tabindex", "-1");
      to.setAttribute("tabindex", "0");
      to.focus();
    });
  }
})();
