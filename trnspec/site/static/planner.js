// The page of plans: shows the case that the selects name; the choice is in the address. Without scripts all cases are shown.
"use strict";
(() => {
  const cases = [...document.querySelectorAll("section.case")];
  if (!cases.length) return;
  const form = document.getElementById("planner");
  const [phase, model, load] = ["phase", "model", "load"].map((id) => document.getElementById(id));
  form.hidden = false;
  form.addEventListener("submit", (event) => event.preventDefault());

  function fill(select, values) {
    const chosen = select.value;
    const options = [...new Set(values)].map((value) => new Option(value, value));
    select.replaceChildren(...options);
    if (options.some((option) => option.value === chosen)) select.value = chosen;
  }
  const of = (name, value) => (each) => each.dataset[name] === value;
  function show() {
    const phases = cases.filter(of("phase", phase.value));
    fill(model, phases.map((each) => each.dataset.model));
    const models = phases.filter(of("model", model.value));
    fill(load, models.map((each) => each.dataset.load));
    for (const each of cases) each.hidden = !(models.includes(each) && each.dataset.load === load.value);
    const chosen = cases.find((each) => !each.hidden);
    // Not the id of the case: the page would scroll to it.
    if (chosen && location.hash !== `#case=${chosen.id}`) history.replaceState(null, "", `#case=${chosen.id}`);
  }
  function read() {
    const chosen = cases.find((each) => location.hash === `#case=${each.id}`) || cases[0];
    phase.value = chosen.dataset.phase;
    fill(model, cases.filter(of("phase", phase.value)).map((each) => each.dataset.model));
    model.value = chosen.dataset.model;
    fill(load, cases.filter(of("phase", phase.value)).filter(of("model", model.value)).map((each) => each.dataset.load));
    load.value = chosen.dataset.load;
    show();
  }
  form.addEventListener("change", show);
  addEventListener("hashchange", read);
  read();
})();
