// The pages of a `mngr tmr` run: what came of it, its tasks, how tests failed, what was decided, terminals while it goes on.
"use strict";

(function () {
  const { el, load, page, site, duration } = window.mngr;
  const { pill, outcome, threeMarks, placeOf, taskLink, listed, section, some, redrawn, words, money, thousands, took, tone } = window.mngrTmr;

  function home() {
    return { text: site().title, href: "#run" };
  }

  function tabs(value, here) {
    const all = [["run", "Overview"], ["tasks", "Tasks", value.tasks.length], ["tests", "Tests"], ["failures", "Failures", value.clusters.length], ["log", "Log", value.log.length]];
    if (value.watched) all.push(["terminals", "Terminals", value.tasks.filter((task) => task.kind === "running").length]);
    return el("nav", { class: "pages", "aria-label": "Pages of this run" }, all.map(([kind, text, count]) =>
      el("a", { href: "#" + kind, "aria-current": kind === here ? "page" : null }, text, count === undefined ? null : el("span", { class: "badge" }, count))));
  }

  function clusterRow(one, open) {
    const rest = Object.entries(one.verdicts).map(([kind, count]) => el("span", { class: tone(kind) }, `${count} ${kind.replaceAll("-", " ")}`));
    return el("details", { class: "cluster", open: open || null },
      el("summary", {}, el("span", { class: "badge" }, one.count), el("span", { class: "mono grow" }, one.signature), el("span", { class: "sub" }, listed(rest, " · "),
        one.passing === null ? null : [rest.length ? " · " : "", el("b", {}, `${one.passing} of ${one.count} pass on the branch`)])),
      el("p", { class: "members" }, listed(one.tests.slice(0, 60).map((test) => taskLink(test))), one.tests.length > 60 ? `, and ${one.count - 60} more` : ""),
      one.example ? window.mngrAnsi.pre(one.example, 80) : null);
  }

  page("run", async () => {
    const root = el("div", {});
    const draw = (value) => root.replaceChildren(...window.mngrOverview(value, { tabs, clusterRow, log }));
    draw(await load("run"));
    return { id: "run", trail: [home()], content: [root], refresh: (value) => redrawn(root, () => draw(value)) };
  });

  function log(list, value) {
    return el("ol", { class: "events" }, list.map((one) => el("li", {}, el("span", { class: "when" }, "+" + duration(Math.max(0, one.at - value.run.began_at))), el("span", {}, words(one.text)))));
  }

  // Something other than a table on a page of its own, drawn again when the run changes.
  function plainPage(kind, title, draw) {
    page(kind, async () => {
      const root = el("div", {});
      const fill = (value) => root.replaceChildren(tabs(value, kind), ...[draw(value)].flat().filter(Boolean));
      fill(await load("run"));
      return { id: "run", trail: [home(), { text: title, href: "#" + kind }], content: [root], refresh: (value) => redrawn(root, () => fill(value)) };
    });
  }

  plainPage("failures", "Failures", (value) => (value.clusters.length
    ? section("Tests that did not pass at the base, by how they failed", null, some(value.clusters, (one, at) => clusterRow(one, at < 3), 60))
    : el("p", { class: "empty" }, "No test failed at the base.")));

  plainPage("log", "Log", (value) => section("What happened, and why", value.log.length,
    value.log.length ? log(value.log, value) : el("p", { class: "sub" }, "Nothing yet.")));

  // Every test as a small square, file by file; what changed for the worse is named above them.
  page("tests", async () => {
    const root = el("div", {});
    const draw = (value, run) => root.replaceChildren(...[tabs(run, "tests"), el("h1", { class: "page-title" }, "Every test, base → branch"), ...drawMatrix(value)].filter(Boolean));
    const [value, run] = await Promise.all([load("tests"), load("run")]);
    draw(value, run);
    return { id: "tests", trail: [home(), { text: "Tests", href: "#tests" }], content: [root], refresh: (now) => redrawn(root, () => draw(now, run)) };
  });

  const TONE_OF = { worse: "bad", unstable: "warn", "still not passing": "warn", better: "good", new: "busy", passes: "calm", "not measured": "none" };

  function drawMatrix(value) {
    const every = value.files.flatMap((file) => file.tests.map((test) => ({ file: file.name, test })));
    if (!every.length) return [el("p", { class: "empty" }, "No test was measured.")];
    const named = (kind, title) => {
      const those = every.filter((one) => one.test[3] === kind);
      return those.length ? section(title, those.length, el("ul", { class: "plain moves" }, some(those, ({ file, test: [name, base, tip, , key] }) => el("li", {},
        threeMarks([base || "new", tip]), taskLink({ key, name: file + "::" + name }, name), el("span", { class: "sub" }, file)), 30))) : null;
    };
    const legend = el("p", { class: "legend" }, Object.entries(value.counts).map(([kind, count]) => el("span", { class: "key" }, el("i", { class: "cell is-" + TONE_OF[kind] }), ` ${count} ${kind}`)));
    const grid = el("div", { class: "matrix" }, value.files.map((file) => el("div", { class: "matrix-row" }, el("span", { class: "mono", title: file.name }, file.name),
      el("span", { class: "cells" }, file.tests.map(([name, base, tip, kind, key]) => {
        const told = `${name}: ${base || "new"} → ${tip || "not measured"}`;
        return el(key ? "a" : "span", { class: "cell is-" + TONE_OF[kind], href: key ? "#task/" + key : null, title: told, "aria-label": told });
      })))));
    return [value.measured ? null : el("p", { class: "sub" }, "The branch was not measured."), named("worse", "Got worse"), named("unstable", "Passed at the base, then failed and passed on the branch"), el("div", { class: "matrix-head" }, legend), grid,
      el("div", { class: "columns" }, el("div", {}, named("new", "New")), el("div", {}, named("still not passing", "Still not passing")))];
  }

  // A long name is broken after an underscore rather than within a word.
  function breakable(name) {
    return name.split(/(?<=_)/).flatMap((part, at) => (at ? [el("wbr", {}), part] : [part]));
  }

  page("tasks", async (_, state) => {
    const value = await load("run");
    const href = (task) => "#task/" + task.key;
    const nav = el("div", {}, tabs(value, "tasks"));
    const table = window.mngrTable({
      rows: value.tasks, state, noun: "task", class: "tasks", href,
      empty: "No tasks yet.", defaultSort: "verdict",
      search: (task) => [task.name, task.file, task.slug, task.verdict, task.why, task.place, task.commit, task.before, task.trend, task.signature, ...task.flags].join("\n"),
      filter: { value: (task) => task.kind, order: value.order, label: (kind) => kind.replaceAll("-", " ") },
      columns: [
        { key: "verdict", title: "Verdict", value: (task) => task.rank, class: "outcome", cell: (task) => pill(task.kind, task.kind === "set-aside" ? "set aside" : task.verdict) },
        { key: "name", title: "Test", value: (task) => task.file + "::" + task.name, class: "grow", cell: (task) => [
          el("a", { class: "mono", href: href(task) }, breakable(task.name)), el("div", { class: "sub", title: task.why }, task.why ? words(task.why) : task.file)] },
        { key: "before", title: "Base → commit → branch", value: (task) => [task.before, task.after, task.at_tip].join(" "), class: "change", cell: (task) => threeMarks([task.before, task.after, task.at_tip]) },
        { key: "branch", title: "Branch", value: (task) => (task.commit ? "0" + task.in_part : task.place ? "1" + task.place : "2"), class: "place", cell: placeOf },
        { key: "flags", title: "Look at", first: "-", value: (task) => task.flags.length, class: "flagged", cell: (task) => [task.flags.map((flag) => el("span", { class: "tag warn" }, flag)),
          task.trend ? el("span", { class: "tag" }, task.trend) : null] },
        { key: "attempts", title: "Tries", first: "-", value: (task) => task.attempts, class: "number tries", cell: (task) => task.attempts || "" },
        { key: "cost", title: "Cost", first: "-", value: (task) => task.cost_usd || task.tokens / 1e9, class: "number cost", cell: (task) => money(task.cost_usd) || thousands(task.tokens) },
        { key: "seconds", title: "Time", first: "-", value: (task) => task.seconds, class: "number", cell: (task) => took(task.seconds) },
      ],
    });
    return {
      id: "run", trail: [home(), { text: "Tasks", href: "#tasks" }], content: [nav, el("h1", { class: "page-title" }, "Tasks"), table.root], onkey: table.onkey,
      refresh(now) {
        nav.replaceChildren(tabs(now, "tasks"));
        table.update(now.tasks);
      },
    };
  });

  page("terminals", async () => {
    const [value, run] = await Promise.all([load("terminals"), load("run")]);
    const root = el("div", {});
    const draw = (now) => {
      root.replaceChildren(tabs(run, "terminals"),
        now.running > now.terminals.length ? el("p", { class: "sub" }, `The first ${now.terminals.length} of ${now.running}.`) : "",
        now.terminals.length ? el("div", { class: "terminals" }, now.terminals.map(terminal)) : el("p", { class: "empty" }, "No agent is at work."));
      toEnd(root);
    };
    draw(value);
    return { id: "terminals", trail: [home(), { text: "Terminals", href: "#terminals" }], content: [root], refresh: draw, ready: () => toEnd(root) };
  });

  // What an agent does now is at the end of its screen.
  function toEnd(root) {
    for (const one of root.querySelectorAll(".terminal .term")) one.scrollTop = one.scrollHeight;
  }

  function terminal(one) {
    return el("article", { class: "terminal" }, el("div", { class: "ask-head" }, taskLink(one), el("span", { class: "dim" }, one.state.toLowerCase())),
      one.problem ? el("p", { class: "cut" }, one.problem) : window.mngrAnsi.pre(one.text || " "));
  }

  page("task", async ([key], state) => {
    const id = "task/" + key;
    const [value, run] = await Promise.all([load(id), load("run")]);
    return window.mngrTaskPage({ id, key, value, run, state, terminal, toEnd, trail: [home(), { text: "Tasks", href: "#tasks" }] });
  });
})();
