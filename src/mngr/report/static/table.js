// A table with search, filters, sorting and the keyboard. Rows are added in slices, so that thousands of them do not
// keep the first ones from being seen.
"use strict";

(function () {
  const { el, keepState } = window.mngr;
  const FIRST_SLICE = 80;
  const SLICE = 250;

  // options: rows, columns [{key, title, cell(row) -> nodes, value(row) to sort by, class}], search(row) -> text,
  // filter {value(row), order, label(value)}, href(row), state {q, only, sort}, noun, empty, defaultSort.
  window.mngrTable = function (options) {
    const state = { q: options.state.q || "", only: options.state.only || "", sort: options.state.sort || "" };
    let { rows } = options;
    let texts = new Map();
    let drawing = 0;
    let selected = -1;
    let seen = [];

    const search = el("input", {
      type: "search", placeholder: `Search ${options.noun}s`, "aria-label": `Search ${options.noun}s`, value: state.q,
      spellcheck: "false", autocomplete: "off", oninput: () => change({ q: search.value }), onkeydown: leaveSearch,
    });
    const chips = el("div", { class: "chips", role: "group", "aria-label": "Show only" });
    const count = el("span", { class: "count", role: "status" });
    const head = el("tr", {});
    const body = el("tbody", {});
    const table = el("table", { class: "table " + (options.class || "") }, el("thead", {}, head), body);
    const nothing = el("p", { class: "empty", hidden: true });
    const root = el("section", {}, el("div", { class: "tools" }, search, chips, count), el("div", { class: "scroll" }, table), nothing);

    function change(part) {
      Object.assign(state, part);
      keepState(state);
      draw();
    }

    function leaveSearch(event) {
      if (event.key === "Escape" && search.value) change({ q: (search.value = "") });
      else if (event.key === "Escape" || event.key === "Enter" || event.key === "ArrowDown") {
        search.blur();
        move(0);
      } else return;
      event.preventDefault();
    }

    function textOf(row) {
      if (!texts.has(row)) texts.set(row, options.search(row).toLowerCase());
      return texts.get(row);
    }

    function found() {
      const words = state.q.toLowerCase().split(/\s+/).filter(Boolean);
      return rows.filter((row) => words.every((word) => textOf(row).includes(word)));
    }

    function sorted(some) {
      const order = state.sort || options.defaultSort || "";
      const key = order.replace(/^-/, "");
      const column = options.columns.find((one) => one.key === key && one.value);
      if (!column) return some;
      const sign = order.startsWith("-") ? -1 : 1;
      return some.map((row, at) => [column.value(row), at, row]).sort((a, b) => compare(a[0], b[0], sign) || a[1] - b[1])
        .map((item) => item[2]);
    }

    // What has no value comes last, either way.
    function compare(a, b, sign) {
      if (a === b) return 0;
      if (a === null || a === undefined) return 1;
      if (b === null || b === undefined) return -1;
      return a < b ? -sign : sign;
    }

    function drawChips(some) {
      if (!options.filter) return;
      const counts = new Map();
      for (const row of some) counts.set(options.filter.value(row), (counts.get(options.filter.value(row)) || 0) + 1);
      const values = options.filter.order.filter((value) => counts.has(value) || value === state.only);
      const chip = (value, label, number) => el("button", {
        type: "button", class: "chip " + (value ? "is-" + value : ""), "aria-pressed": String(state.only === value),
        "data-value": value, onclick: () => change({ only: state.only === value ? "" : value }),
      }, label, " ", el("b", {}, number));
      chips.replaceChildren(chip("", "all", some.length),
        ...values.map((value) => chip(value, options.filter.label(value), counts.get(value) || 0)));
    }

    function drawHead() {
      const order = state.sort || options.defaultSort || "";
      head.replaceChildren(...options.columns.map((column) => {
        const now = order.replace(/^-/, "") === column.key ? (order.startsWith("-") ? "descending" : "ascending") : null;
        const next = now === "ascending" ? "-" + column.key : now === "descending" ? column.key : (column.first || "") + column.key;
        const title = column.value
          ? el("button", { type: "button", onclick: () => change({ sort: next }) }, column.title,
            el("span", { class: "arrow", "aria-hidden": "true" }, now === "ascending" ? "▲" : now ? "▼" : ""))
          : column.title;
        return el("th", { scope: "col", class: column.class, "aria-sort": now }, title);
      }));
    }

    function drawRow(row, at) {
      const made = el("tr", { class: options.rowClass ? options.rowClass(row) : null, "data-at": at, onclick: openRow },
        options.columns.map((column) => el("td", { class: column.class }, column.cell(row))));
      if (at === selected) made.classList.add("selected");
      return made;
    }

    function openRow(event) {
      if (event.target.closest("a, button") || String(getSelection())) return;
      location.hash = options.href(seen[Number(event.currentTarget.dataset.at)]);
    }

    function draw() {
      const mine = ++drawing;
      const some = found();
      drawChips(some);
      drawHead();
      seen = sorted(state.only ? some.filter((row) => options.filter.value(row) === state.only) : some);
      selected = Math.min(selected, seen.length - 1);
      count.textContent = seen.length === rows.length ? "" : `${seen.length} of ${rows.length}`;
      nothing.hidden = seen.length > 0;
      nothing.textContent = rows.length ? `No ${options.noun} fits.` : options.empty;
      table.hidden = seen.length === 0;
      const add = (from, to) => body.append(...seen.slice(from, to).map((row, at) => drawRow(row, from + at)));
      body.replaceChildren();
      add(0, FIRST_SLICE);
      let from = FIRST_SLICE;
      const more = () => {
        if (mine !== drawing || from >= seen.length) return;
        add(from, from + SLICE);
        from += SLICE;
        requestAnimationFrame(more);
      };
      requestAnimationFrame(more);
    }

    function move(step) {
      if (!seen.length) return;
      const before = body.children[selected];
      if (before) before.classList.remove("selected");
      selected = Math.max(0, Math.min(seen.length - 1, selected + step));
      const now = body.children[selected];
      if (!now) return;
      now.classList.add("selected");
      now.scrollIntoView({ block: "nearest" });
      const link = now.querySelector("a");
      if (link) link.focus({ preventScroll: true });
    }

    function onkey(event) {
      if (event.key === "j" || event.key === "ArrowDown") move(1);
      else if (event.key === "k" || event.key === "ArrowUp") move(-1);
      else if (event.key === "Enter" && selected >= 0 && event.target.tagName !== "A" && event.target.tagName !== "BUTTON")
        location.hash = options.href(seen[selected]);
      else return;
      event.preventDefault();
    }

    function update(newRows) {
      rows = newRows;
      texts = new Map();
      draw();
    }

    draw();
    return { root, update, onkey };
  };
})();
