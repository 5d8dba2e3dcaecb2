// The table of everything: filter, sort, columns and formulas, comparison, CSV and JSON; the whole view is in the address.
"use strict";
(() => {
  const data = window.TRNSPEC;
  const $ = (id) => document.getElementById(id);
  const SYSTEMS = ["Chip", "Server", "UltraServer"];
  const COLUMNS = {
    systems: ["chips", "peak.dense.bf16", "peak.dense.fp8", "memory.capacity", "memory.bandwidth", "network.bandwidth", "prices.on-demand"],
    Chip: ["peak.dense.bf16", "peak.dense.fp8", "memory.capacity", "memory.bandwidth", "links.bandwidth.both", "peak.dense.bf16 / memory.bandwidth"],
    all: ["peak.dense.bf16", "memory.capacity", "memory.bandwidth"],
  };
  COLUMNS.Server = COLUMNS.UltraServer = COLUMNS.systems;
  const MOST = 6;

  // Values.

  const source = (index) => (index ? data.sources[index - 1] : null);
  const values = new Map();
  function valueOf(doc, at) {
    const row = doc.values[at];
    if (!row) return null;
    if (!values.has(row)) {
      const value = { at, doc };
      data.fields.forEach((field, i) => { value[field] = row[i] === undefined || row[i] === 0 ? (i >= 1 && i <= 3 ? row[i] ?? null : "") : row[i]; });
      value.others = (value.others || []).map((other) => Object.fromEntries(data.otherFields.map((field, i) => [field, other[i] || ""])));
      value.base = value.unit ? data.units[value.unit][1] : "";
      values.set(row, value);
    }
    return values.get(row);
  }
  const isNumber = (value) => value !== null && value.value !== null;

  // Units. A column has one unit, chosen as in trnspec/quantities/display.py: the published one if it suits all values, else one
  // of its family that suits the median. "published" shows the text of the source.

  const PREFIXES = { decimal: ["", "k", "M", "G", "T", "P", "E"], binary: ["", "Ki", "Mi", "Gi", "Ti", "Pi"] };
  const readable = (x) => x === 0 || (x >= 1 && x < 10000);
  function unitFor(list, system) {
    const numbers = list.filter((value) => isNumber(value) && value.unit);
    if (!numbers.length) return { symbol: "", factor: 1 };
    const base = numbers[0].base;
    const first = (numbers.find((value) => value.unit.endsWith("iB")) || numbers[0]).unit;
    const own = { symbol: first, factor: data.units[first][0] };
    const bytes = PREFIXES[system] && (base === "B" || base === "B/s");
    if (!bytes && numbers.every((value) => value.unit === first && readable(value.value / own.factor))) return own;
    const family = bytes ? system : /^[KMGTP]i/.test(first) ? "binary" : "decimal";
    const bare = first.replace(/^[kKMGTPE]i?/, "");
    const stem = bytes ? base : data.units[bare] ? bare : first;
    const size = (family === "decimal" ? 1000 : 1024);
    const units = PREFIXES[family].map((prefix, step) => ({ symbol: prefix + stem, factor: size ** step * (data.units[stem] || [1])[0] }));
    const sorted = numbers.map((value) => value.value).sort((x, y) => x - y);
    const median = sorted[Math.floor(sorted.length / 2)];
    return units.filter((unit) => (bytes || data.units[unit.symbol]) && unit.factor <= median).pop() || own;
  }
  const number = (x, digits = 4) => x.toLocaleString("en-US", { maximumSignificantDigits: Math.min(21, Math.max(digits, Math.abs(x) >= 1e4 && Number.isInteger(x) ? 15 : digits)) });
  const digitsOf = (text) => (text.match(/\d/g) || []).length;
  function shown(value, unit, system) {
    if (system === "published" || !value.unit) return value.text;
    const same = system === "one" ? value.text.endsWith(` ${unit.symbol}`) || data.units[unit.symbol][1] !== value.base : !["B", "B/s"].includes(value.base);
    if (same) return value.text;
    const mark = value.text.match(/^\D*/)[0];
    return `${mark}${number(value.value / unit.factor, Math.max(4, Math.min(digitsOf(value.text), 12)))} ${unit.symbol}`;
  }

  // Formulas of paths: + - * / and parentheses, over intervals.

  function parse(text) {
    const tokens = text.match(/[A-Za-z][\w.-]*|\d+(?:\.\d+)?|[-+*/()]|\S/g) || [];
    let i = 0;
    const fail = (why) => { throw new Error(`${text}: ${why}`); };
    function atom() {
      const token = tokens[i++];
      if (token === "(") { const inner = sum(); if (tokens[i++] !== ")") fail("a ) is missing"); return inner; }
      if (token === undefined) fail("a path is expected at the end");
      if (/^\d/.test(token)) return { number: Number(token) };
      if (!/^[A-Za-z]/.test(token)) fail(`${token} is not expected`);
      if (!paths.has(token)) fail(`no document has ${token}`);
      return { path: token };
    }
    function chain(next, operators) {
      let left = next();
      while (operators.includes(tokens[i])) { const sign = tokens[i++]; left = { sign, left, right: next() }; }
      return left;
    }
    const product = () => chain(atom, ["*", "/"]);
    const sum = () => chain(product, ["+", "-"]);
    const tree = sum();
    if (i < tokens.length) fail(`${tokens[i]} is not expected`);
    return tree;
  }
  const leaves = (tree) => (tree.path ? [tree.path] : tree.sign ? [...leaves(tree.left), ...leaves(tree.right)] : []);
  function evaluate(tree, doc, units) {
    if (tree.number !== undefined) return { value: tree.number, low: tree.number, high: tree.number, factor: 1, symbol: "", base: "" };
    if (tree.path) {
      const value = valueOf(doc, tree.path);
      if (!isNumber(value)) return null;
      const unit = units.get(tree.path);
      return { value: value.value, low: value.low ?? 0, high: value.high ?? Infinity, factor: unit.factor, symbol: unit.symbol, base: value.base };
    }
    const a = evaluate(tree.left, doc, units), b = evaluate(tree.right, doc, units);
    if (!a || !b) return null;
    if (tree.sign === "+" || tree.sign === "-") {
      if (a.base !== b.base) throw new Error(`${a.symbol || a.value} and ${b.symbol || b.value} cannot be added or subtracted`);
      return tree.sign === "+"
        ? { ...a, value: a.value + b.value, low: a.low + b.low, high: a.high + b.high }
        : { ...a, value: a.value - b.value, low: a.low - b.high, high: a.high - b.low };
    }
    if (tree.sign === "*") {
      const symbol = [a.symbol, b.symbol].filter(Boolean).join(" x ");
      return { value: a.value * b.value, low: a.low * b.low, high: a.high * b.high, factor: a.factor * b.factor, symbol, base: [a.base, b.base].filter(Boolean).join(" x ") };
    }
    if (!b.value) return null;
    const same = a.base === b.base;
    const per = (x, y) => (y ? `${x || "1"} per ${y}` : x);
    const quotient = { value: a.value / b.value, low: a.low / b.high, high: b.low > 0 ? a.high / b.low : Infinity };
    if (a.base === "FLOPS" && b.base === "B/s") return { ...quotient, factor: 1, symbol: "FLOP/B", base: "FLOP/B" };
    return {
      ...quotient,
      factor: same ? 1 : a.factor / b.factor, symbol: same ? "" : per(a.symbol, b.symbol), base: same ? "" : per(a.base, b.base),
    };
  }

  const paths = new Set();
  for (const doc of data.documents) for (const at of Object.keys(doc.values)) paths.add(at);
  const kinds = [...new Set(data.documents.map((doc) => doc.kind))];

  // The view, kept in the address.

  const initial = () => ({ kind: "systems", q: "", units: "one", cols: null, sort: "", chart: "", pick: [], compare: false, diff: false });
  let view = initial();
  function read() {
    const hash = new URLSearchParams(location.hash.slice(1));
    view = initial();
    const kind = hash.get("kind");
    if (["systems", "all", ...kinds].includes(kind)) view.kind = kind;
    view.q = hash.get("q") || "";
    if (["published", "decimal", "binary"].includes(hash.get("units"))) view.units = hash.get("units");
    if (hash.has("cols")) view.cols = hash.get("cols").split(";").filter(Boolean);
    view.sort = hash.get("sort") || "";
    view.chart = hash.get("chart") || "";
    const names = new Set(data.documents.map((doc) => doc.name));
    view.pick = (hash.get("pick") || "").split(",").filter((name) => names.has(name)).slice(0, MOST);
    view.compare = hash.get("compare") === "1" && view.pick.length > 1;
    view.diff = hash.get("diff") === "1";
  }
  function write(entry = "replaceState") {
    const hash = new URLSearchParams();
    if (view.kind !== "systems") hash.set("kind", view.kind);
    if (view.q) hash.set("q", view.q);
    if (view.units !== "one") hash.set("units", view.units);
    if (view.cols) hash.set("cols", view.cols.join(";"));
    if (view.sort) hash.set("sort", view.sort);
    if (view.chart) hash.set("chart", view.chart);
    if (view.pick.length) hash.set("pick", view.pick.join(","));
    if (view.compare) hash.set("compare", "1");
    if (view.diff) hash.set("diff", "1");
    const text = hash.toString();
    if (text !== location.hash.slice(1)) history[entry](null, "", text ? `#${text}` : location.pathname.split("/").pop() || ".");
  }
  function columns() {
    if (view.cols) return view.cols;
    if (COLUMNS[view.kind]) return COLUMNS[view.kind].filter((text) => parse_or_null(text));
    const counts = new Map();
    for (const doc of data.documents) {
      if (doc.kind === view.kind) for (const at of Object.keys(doc.values)) if (isNumber(valueOf(doc, at))) counts.set(at, (counts.get(at) || 0) + 1);
    }
    const most = Math.max(0, ...counts.values());
    return [...counts].filter(([, count]) => count > most / 2).map(([at]) => at).slice(0, 7);
  }
  function parse_or_null(text) { try { return parse(text); } catch { return null; } }

  // The filter: words and conditions between commas.

  function conditions() {
    return view.q.split(/,(?!(?<=\d,)\d{3}(?!\d))/).map((part) => part.trim()).filter(Boolean).map((part) => {
      const match = part.match(/^(.*?[\w)])\s*(>=|<=|!=|=|>|<|~)\s*(.+)$/);
      if (!match) {
        const words = part.toLowerCase().split(/\s+/);
        return (doc) => words.every((word) => `${doc.name} ${doc.title} ${doc.kind}`.toLowerCase().includes(word));
      }
      const [, left, sign, right] = match;
      const tree = parse(left);
      const amount = right.match(/^(-?[\d,]*\.?\d+(?:e\d+)?)\s*(.*)$/);
      if (!amount || (tree.path && !data.documents.some((doc) => isNumber(valueOf(doc, tree.path))))) {
        if (!tree.path || [">", "<", ">=", "<="].includes(sign)) throw new Error(`${part}: a number is expected after ${sign}`);
        const word = right.toLowerCase();
        return (doc) => {
          const value = valueOf(doc, tree.path);
          if (!value || !value.text) return false;
          const text = value.text.toLowerCase();
          return sign === "~" ? text.includes(word) : (text === word) === (sign === "=");
        };
      }
      const unit = amount[2].trim();
      if (unit && !data.units[unit]) throw new Error(`${part}: ${unit} is not a unit`);
      const wanted = Number(amount[1].replaceAll(",", "")) * (unit ? data.units[unit][0] : 1);
      const units = new Map(leaves(tree).map((at) => [at, unitFor(data.documents.map((doc) => valueOf(doc, at)), view.units)]));
      const bases = data.documents.map((doc) => evaluate(tree, doc, units)).filter(Boolean);
      if (tree.path && bases.length && (unit ? data.units[unit][1] : "") !== bases[0].base) {
        throw new Error(`${part}: ${unit ? `${unit} is not a unit of ${left}` : `a unit is missing, such as ${units.get(tree.path).symbol}`}`);
      }
      return (doc) => {
        const result = evaluate(tree, doc, units);
        if (!result) return false;
        const x = unit ? result.value : result.value / result.factor;
        const text = tree.path ? valueOf(doc, tree.path).text : "";
        const low = text.startsWith("<=") ? 0 : x, high = text.startsWith(">=") ? Infinity : x;
        switch (sign) {
          case ">": return low > wanted;
          case ">=": return low >= wanted;
          case "<": return high < wanted;
          case "<=": return high <= wanted;
          case "!=": return high < wanted || low > wanted;
          default: return low === high && Math.abs(x - wanted) <= 1e-12 * Math.abs(wanted);
        }
      };
    });
  }

  // Elements.

  function el(tag, attributes = {}, ...children) {
    const node = document.createElement(tag);
    for (const [key, value] of Object.entries(attributes)) {
      if (key.startsWith("on")) node.addEventListener(key.slice(2), value);
      else if (value !== false && value !== null && value !== undefined) node.setAttribute(key, value === true ? "" : value);
    }
    node.append(...children.filter((child) => child !== null && child !== ""));
    return node;
  }
  const link = (name, at = "") => el("a", { href: `document/${name}.html${at ? `#${at}` : ""}` }, name);
  const sourceLink = (entry) => el("a", { href: `source/${entry[0]}.html` }, entry[0]);
  const wrapped = (text) => text.split(/(?<=\.)/).flatMap((step) => [step, el("wbr")]);
  const verdict = (word) => el("span", { class: `verdict v-${word}` }, word);
  function card(text, rows) {
    const details = el("details", { class: "val" }, el("summary", {}, text));
    details.fill = () => {
      const list = el("dl");
      for (const [term, ...about] of rows()) list.append(el("dt", {}, term), el("dd", {}, ...about));
      details.append(el("div", { class: "pop" }, list));
    };
    return details;
  }
  function about(value) {
    const rows = [["figure", el("a", { href: `document/${value.doc.name}.html#${value.at}` }, value.at), ` of ${value.doc.name}`]];
    rows.push(["as published", value.text]);
    if (value.interval) rows.push(["interval", `${value.interval} ${value.unit}`]);
    if (value.scope) rows.push(["scope", value.scope]);
    if (value.formula) rows.push([value.verdict === "total" ? "sum of" : "derived", value.formula]);
    const from = source(value.source);
    if (from) rows.push(["source", sourceLink(from), from[2] ? `, ${from[2]}` : "", value.where ? `, ${value.where}` : ""]);
    if (value.reason) rows.push(["reason", value.reason]);
    if (value.note) rows.push(["note", value.note]);
    if (value.line) {
      const file = value.document || value.doc.name;
      rows.push(["file", el("a", { href: `document/${file}.html#L${value.line}` }, `${file}.yaml, line ${value.line}`)]);
    }
    for (const other of value.others) {
      const by = source(other.source);
      rows.push([verdict(other.verdict), el("b", {}, other.says), " ", by ? sourceLink(by) : "", by && by[2] ? `, ${by[2]}` : "", other.where ? `, ${other.where}` : "", other.reason ? `: ${other.reason}` : ""]);
    }
    return rows;
  }
  const ends = (result) => `[${number(result.low / result.factor)}, ${result.high === Infinity ? "..." : number(result.high / result.factor)})`;

  // One cell of a column: what is shown, what it sorts by, what CSV and JSON get.

  function column(text, docs) {
    const tree = parse(text);
    const units = new Map(leaves(tree).map((at) => [at, unitFor(docs.map((doc) => valueOf(doc, at)), view.units)]));
    if (tree.path) {
      const unit = units.get(tree.path);
      const mixed = !PREFIXES[view.units] || !["B", "B/s"].includes((docs.map((doc) => valueOf(doc, tree.path)).find(isNumber) || {}).base);
      return {
        text, unit: mixed ? "" : unit.symbol,
        cell(doc) {
          const value = valueOf(doc, tree.path);
          if (!value || (!value.text && !value.others.length)) return null;
          const display = value.text ? shown(value, unit, view.units) : "not adopted";
          return { text: display, number: value.value, low: value.low, high: value.high, unit: value.base, about: () => about(value), unknown: !value.text, words: !isNumber(value) && value.text !== "" };
        },
      };
    }
    let symbol = "";
    for (const doc of docs) { const result = evaluate(tree, doc, units); if (result) { symbol = result.symbol; break; } }
    return {
      text, unit: symbol,
      cell(doc) {
        const result = evaluate(tree, doc, units);
        if (!result || !Number.isFinite(result.value)) return null;
        const parts = () => leaves(tree).map((at) => [at, valueOf(doc, at).text, ...sourceOf(valueOf(doc, at))]);
        return {
          text: number(result.value / result.factor), number: result.value / result.factor,
          low: result.low / result.factor, high: result.high === Infinity ? null : result.high / result.factor, unit: symbol,
          about: () => [["formula", text], ["interval", `${ends(result)} ${symbol}`], ...parts()],
        };
      },
    };
  }
  function sourceOf(value) {
    const from = source(value.source);
    if (from) return [" ", sourceLink(from), `, ${from[2]}`];
    return value.formula ? [` = ${value.formula}`] : [];
  }

  // The two views.

  let rows = [];      // what CSV and JSON write: the names of the columns, then one array of cells per row
  let heads = [];
  function table() {
    const tests = conditions();
    let docs = data.documents.filter((doc) => (view.kind === "all" || (view.kind === "systems" ? SYSTEMS.includes(doc.kind) : doc.kind === view.kind)) && tests.every((test) => test(doc)));
    const cols = columns().map((text) => column(text, docs));
    const key = view.sort.replace(/^-/, ""), down = view.sort.startsWith("-");
    if (key) {
      const by = key === "name" || key === "kind" ? { cell: (doc) => ({ text: doc[key], number: null }) } : column(key, docs);
      const cells = new Map(docs.map((doc) => [doc, by.cell(doc)]));
      const order = (a, b) => (a.number !== null && b.number !== null ? a.number - b.number : a.text.localeCompare(b.text, "en", { numeric: true }));
      docs = docs.map((doc, i) => [doc, i]).sort(([a, i], [b, j]) => {
        const x = cells.get(a), y = cells.get(b);
        if (!x || x.unknown || !y || y.unknown) return (x && !x.unknown ? 0 : 1) - (y && !y.unknown ? 0 : 1) || i - j;  // unknown values last, either way
        return (down ? -1 : 1) * order(x, y) || i - j;
      }).map(([doc]) => doc);
    }
    const head = (text, unit, drop, right) => {
      const state = key === text ? (down ? "descending" : "ascending") : null;
      const mark = state ? (down ? " ▼" : " ▲") : "";
      const sort = () => { view.sort = key === text && !down ? `-${text}` : text; refresh(`sort:${text}`); };
      return el("th", { scope: "col", "aria-sort": state, class: right ? "num" : null },
        el("span", { class: "head" }, el("button", { type: "button", "data-key": `sort:${text}`, onclick: sort }, ...wrapped(text), mark),
          drop ? el("button", { type: "button", class: "drop", "aria-label": `Remove column ${text}`, onclick: () => { view.cols = columns().filter((c) => c !== text); if (key === text) view.sort = ""; refresh("add"); } }, "×") : null),
        unit ? el("small", {}, unit) : null);
    };
    const body = el("tbody");
    heads = ["name", "kind", ...cols.map((col) => col.text)];
    rows = [];
    for (const doc of docs) {
      const cells = cols.map((col) => col.cell(doc));
      const box = el("input", { type: "checkbox", "aria-label": `Compare ${doc.name}`, "data-key": `pick:${doc.name}`, onchange: (event) => choose(doc.name, event.target) });
      box.checked = view.pick.includes(doc.name);
      body.append(el("tr", {}, el("th", { scope: "row" }, box, link(doc.name)), el("td", {}, doc.kind),
        ...cells.map((cell) => (cell ? el("td", { class: cell.words ? "words" : "num" }, card(cell.text, cell.about)) : el("td", { class: "num dim" }, "-")))));
      rows.push([doc.name, doc.kind, ...cells]);
    }
    $("table").replaceChildren(el("caption", { hidden: true }, "Documents"), el("thead", {}, el("tr", {}, head("name"), head("kind"), ...cols.map((col) => head(col.text, col.unit, true, !docs.some((doc) => (col.cell(doc) || {}).words))))), body);
    chart(cols, docs);
    say(`${docs.length} of ${data.documents.length} documents${view.pick.length ? `; ${view.pick.length} chosen to compare` : ""}`);
  }
  // Bars of one column, in the order of the table, with the ends of the intervals.

  function chart(cols, docs) {
    const numeric = cols.filter((col) => docs.some((doc) => { const cell = col.cell(doc); return cell && cell.number !== null; }));
    const names = numeric.map((col) => col.text);
    $("chart").replaceChildren(el("option", { value: "" }, "none"), ...names.map((name) => el("option", { value: name }, name)));
    const col = numeric.find((each) => each.text === view.chart);
    $("chart").value = col ? col.text : "";
    const figure = $("figure");
    figure.hidden = !col;
    if (!col) return;
    const cells = docs.map((doc) => [doc, col.cell(doc)]).filter(([, cell]) => cell && cell.number !== null);
    const most = Math.max(...cells.map(([, cell]) => Math.max(cell.number, cell.high ?? cell.number))) || 1;
    const share = (x) => `${((100 * Math.max(0, x)) / most).toFixed(3)}%`;
    figure.replaceChildren(
      el("figcaption", {}, `${col.text}${col.unit ? ` [${col.unit}]` : ""}, with the intervals of the values`),
      el("div", { class: "chart" }, ...cells.flatMap(([doc, cell]) => [
        link(doc.name),
        el("span", { class: "track", "aria-hidden": "true" },
          el("span", { class: "bar", style: `width: ${share(cell.number)}` }),
          cell.high !== null && cell.low !== null && cell.high > cell.low ? el("span", { class: "whisker", style: `left: ${share(cell.low)}; width: ${share(cell.high - cell.low)}` }) : null),
        el("span", { class: "num" }, cell.text),
      ])),
      ...(cells.length < docs.length ? [el("p", { class: "dim" }, `${docs.length - cells.length} without a value`)] : []));
  }
  function compare() {
    const docs = view.pick.map((name) => data.documents.find((doc) => doc.name === name));
    const all = [...new Set(docs.flatMap((doc) => Object.keys(doc.values)))];
    const group = (at) => at.slice(0, Math.max(0, at.lastIndexOf(".")));
    const order = [...new Set(["", ...all.map(group)])];
    all.sort((a, b) => order.indexOf(group(a)) - order.indexOf(group(b)));
    const body = el("tbody");
    let last = "", count = 0;
    heads = ["figure", ...docs.map((doc) => doc.name)];
    rows = [];
    for (const at of all) {
      const col = column(at, docs);
      const cells = docs.map((doc) => col.cell(doc));
      if (!docs.some((doc) => valueOf(doc, at) && valueOf(doc, at).text)) continue;
      const same = cells.every((cell) => cell && (cells[0].number !== null && cell.number !== null ? cell.number === cells[0].number && cell.unit === cells[0].unit : cell.text === cells[0].text));
      if (view.diff && same) continue;
      if (group(at) !== last) { last = group(at); body.append(el("tr", { class: "group" }, el("th", { scope: "row" }, last), el("td", { colspan: docs.length }))); }
      const base = cells[0];
      body.append(el("tr", {}, el("th", { scope: "row" }, last ? at.slice(last.length + 1) : at), ...cells.map((cell, i) => {
        if (!cell) return el("td", { class: "dim" }, "-");
        const ratio = i && base && base.number && cell.number !== null && base.unit === cell.unit && cell.number !== base.number ? number(cell.number / base.number, 3) : "";
        return el("td", { class: `${cell.words ? "words" : ""}${!same && !ratio && i && (!base || cell.text !== base.text) ? " unequal" : ""}` }, card(cell.text, cell.about), ratio ? el("small", { class: "dim" }, `${ratio}x`) : null);
      })));
      rows.push([at, ...cells]);
      count += 1;
    }
    $("table").replaceChildren(el("caption", { hidden: true }, "Comparison"), el("thead", {}, el("tr", {}, el("th", { scope: "col" }, "figure"), ...docs.map((doc) => el("th", { scope: "col" }, link(doc.name), el("button", { type: "button", class: "drop", "aria-label": `Remove ${doc.name}`, onclick: () => { view.pick = view.pick.filter((name) => name !== doc.name); if (view.pick.length < 2) view.compare = false; refresh(view.compare ? "compare" : "kind"); } }, "×"), el("small", {}, doc.kind))))), body);
    say(`${count} ${view.diff ? "figures that differ" : "figures"} of ${docs.length} documents; ratios are to ${docs[0].name}`);
  }
  function choose(name, box) {
    if (box.checked && view.pick.length >= MOST) { box.checked = false; say(`at most ${MOST} documents are compared`, true); return; }
    view.pick = box.checked ? [...view.pick, name] : view.pick.filter((other) => other !== name);
    write();
    controls();
    say(`${view.pick.length} chosen to compare: ${view.pick.join(", ")}`);
  }
  function say(text, wrong = false) { $("status").textContent = text; $("status").classList.toggle("wrong", wrong); }
  function controls() {
    for (const id of ["kind", "units"]) $(id).value = view[id];
    if (document.activeElement !== $("q")) $("q").value = view.q;
    $("compare").textContent = view.compare ? "Back to the table" : view.pick.length ? `Compare (${view.pick.length})` : "Compare";
    $("compare").disabled = view.pick.length < 2;
    $("diffbox").hidden = !view.compare;
    $("diff").checked = view.diff;
    for (const id of ["q", "kind", "add", "addcolumn", "chart"]) $(id).disabled = view.compare;
    if (view.compare) $("figure").hidden = true;
  }
  function refresh(focus = "") {
    write();
    controls();
    try {
      if (view.compare) compare();
      else table();
    } catch (error) {
      say(error.message, true);
    }
    const node = focus && ($(focus) || document.querySelector(`[data-key="${CSS.escape(focus)}"]`));
    if (node) node.focus();
  }

  // CSV and JSON of what is seen.

  function save(name, type, text) {
    const url = URL.createObjectURL(new Blob([text], { type }));
    el("a", { href: url, download: name }).click();
    setTimeout(() => URL.revokeObjectURL(url), 1000);
  }
  const plain = (cell) => (cell === null ? "" : typeof cell === "string" ? cell : cell.text);
  const quoted = (text) => (/[",\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text);
  const asObject = (cell) => (cell === null || typeof cell === "string" ? cell : { text: cell.text, value: cell.number, low: cell.low, high: cell.high, unit: cell.unit });
  $("csv").addEventListener("click", () => save("trnspec.csv", "text/csv", [heads, ...rows].map((row) => row.map((cell) => quoted(plain(cell))).join(",")).join("\r\n") + "\r\n"));
  $("json").addEventListener("click", () => save("trnspec.json", "application/json", JSON.stringify({ view: location.hash.slice(1), rows: rows.map((row) => Object.fromEntries(heads.map((head, i) => [head, asObject(row[i])]))) }, null, 2) + "\n"));

  $("kind").append(el("option", { value: "systems" }, "chips and systems"), ...kinds.map((kind) => el("option", { value: kind }, kind)), el("option", { value: "all" }, "all"));
  $("paths").append(...[...paths].sort().map((at) => el("option", { value: at })));
  $("explorer").addEventListener("submit", (event) => {
    event.preventDefault();
    const text = $("add").value.trim();
    if (!text) return;
    try { column(text, data.documents); } catch (error) { say(error.message, true); return; }
    view.cols = [...columns().filter((col) => col !== text), text];
    $("add").value = "";
    refresh();
  });
  let typing = 0;
  $("q").addEventListener("input", () => { clearTimeout(typing); typing = setTimeout(() => { view.q = $("q").value; refresh(); }, 120); });
  $("q").addEventListener("keydown", (event) => { if (event.key === "Enter") { event.preventDefault(); view.q = $("q").value; refresh(); } });
  $("kind").addEventListener("change", () => { view.kind = $("kind").value; view.cols = null; view.sort = ""; refresh(); });
  $("chart").addEventListener("change", () => { view.chart = $("chart").value; refresh("chart"); });
  $("units").addEventListener("change", () => { view.units = $("units").value; refresh(); });
  $("compare").addEventListener("click", () => { view.compare = !view.compare; write("pushState"); refresh("compare"); });
  $("diff").addEventListener("change", () => { view.diff = $("diff").checked; refresh(); });
  $("reset").addEventListener("click", () => { view = initial(); $("q").value = ""; refresh(); });
  addEventListener("hashchange", () => { read(); $("q").value = view.q; refresh(); });
  read();
  refresh();
})();
