// The pages of a `mngr tmr` run: what came of it, its tasks, how tests failed, what was decided, terminals while it goes on.
"use strict";

(function () {
  const { el, load, page, site, moment, duration } = window.mngr;
  const { pill, outcome, meter, taskLink, listed, section, some, folded, redrawn, words, prose, money, thousands, took, tone } = window.mngrTmr;
  const BEFORE = ["fail", "broken", "flaky", "not measured", "skipped", "pass"];

  function home() {
    return { text: site().title, href: "#run" };
  }

  function tabs(value, here) {
    const all = [["run", "Overview"], ["tasks", "Tasks", value.tasks.length], ["failures", "Failures", value.clusters.length], ["decisions", "Decisions", value.decisions.length]];
    if (value.watched) all.push(["terminals", "Terminals", value.tasks.filter((task) => task.kind === "running").length]);
    return el("nav", { class: "pages", "aria-label": "Pages of this run" }, all.map(([kind, text, count]) =>
      el("a", { href: "#" + kind, "aria-current": kind === here ? "page" : null }, text, count === undefined ? null : el("span", { class: "badge" }, count))));
  }

  function stateTone(run) {
    if (run.state === "running") return "running";
    if (run.state !== "over") return "blocked";
    return run.exit_code === 0 ? "fixed" : run.exit_code === 3 ? "held" : "failed";
  }

  // An ending in words: what its exit code means.
  function stateText(run) {
    if (run.state !== "over") return run.state;
    return { 0: "over: all good", 1: "over: the branch is red", 3: "over: green, some tasks left" }[run.exit_code] || "over";
  }

  function head(value) {
    const { run } = value;
    const facts = [run.began_at ? moment(run.began_at) : null, "base " + run.base.slice(0, 8), run.type && `agents of type ${run.type}`,
      run.max_agents && `at most ${run.max_agents} at once`, run.exit_code !== null && run.exit_code !== undefined ? `exit code ${run.exit_code}` : null, run.because];
    return [
      el("div", { class: "titles" }, el("h1", { class: "mono" }, run.id), pill(stateTone(run), stateText(run))),
      el("p", { class: "facts" }, facts.filter(Boolean).join(" · ")),
    ];
  }

  function tile(title, big, ...more) {
    return el("div", { class: "tile" }, el("h3", {}, title), el("div", { class: "big" }, big), more);
  }

  function tiles(value) {
    const { run, tests } = value;
    const done = Object.entries(value.verdicts).reduce((sum, [kind, number]) => sum + (kind === "fixed" || kind === "improved" || kind === "unchanged" ? number : 0), 0);
    const legend = el("div", { class: "legend" }, value.order.filter((kind) => value.verdicts[kind]).map((kind) =>
      el("a", { class: tone(kind), href: "#tasks?only=" + kind }, el("b", {}, value.verdicts[kind]), " " + kind.replace("-", " "))));
    return el("div", { class: "tiles" },
      tile("Tasks", [String(value.tasks.length), el("small", {}, ` ${done} good`)], meter(value.verdicts, value.order, "no tasks"), legend),
      testsTile(tests),
      tile("Spent", money(run.cost_usd) || (run.unpriced ? "not known" : "$0"), run.unpriced ? el("p", { class: "sub" }, `${run.unpriced} answers without a known price`) : "", el("p", { class: "sub" }, `${thousands(run.tokens) || 0} tokens`, run.cached_tokens ? `, ${thousands(run.cached_tokens)} more from a cache` : ""),
        el("p", { class: "sub" }, `${run.attempts} attempts`, run.budget_usd ? ` · budget $${run.budget_usd}` : "")),
      tile("Wall time", took(run.seconds), el("p", { class: "sub" }, `up to ${value.chart.most} agents at once`)));
  }

  function testsTile(tests) {
    const sum = (counts) => Object.values(counts).reduce((total, number) => total + number, 0);
    const side = (counts, text) => el("div", { class: "side" }, el("span", { class: "big" }, counts.pass || 0, el("small", {}, ` of ${sum(counts)}`)), el("span", { class: "sub" }, text),
      el("span", { class: "sub" }, listed(BEFORE.filter((word) => counts[word] && word !== "pass").map((word) => el("span", { class: tone(word) }, `${counts[word]} ${word}`)), " · ")));
    const before = sum(tests.before) ? side(tests.before, "pass at the base") : el("div", { class: "side" }, el("span", { class: "sub" }, "no baseline"));
    const after = tests.after ? side(tests.after, "pass on the branch") : el("div", { class: "side" }, el("span", { class: "sub" }, "no branch measured yet"));
    return el("div", { class: "tile wide" }, el("h3", {}, "Tests"), el("div", { class: "sides" }, before, el("span", { class: "to", "aria-label": "to" }, "→"), after),
      tests.new ? el("p", { class: "sub" }, `${tests.new} of them new`) : null);
  }

  function asks(value) {
    const { blocked, held, escalations } = value.asks;
    const count = blocked.length + held.length + escalations.length;
    if (!count) return null;
    const card = (kind, one, ...content) => el("article", { class: "ask" }, el("div", { class: "ask-head" }, kind, taskLink(one, one.name)), content);
    return section("For you to decide", count,
      some(blocked, (one) => card(pill("blocked"), one, el("p", {}, words(one.reason)), one.needs ? el("p", {}, el("b", {}, "Needs: "), words(one.needs)) : null), 5),
      some(held, (one) => card(pill("held"), one, el("p", {}, words(one.reason)), el("p", { class: "sub" }, "To accept it: ", el("code", {}, `mngr tmr integrate --accept ${one.slug}`))), 5),
      some(escalations, (one) => card(el("span", { class: "pill tone-busy" }, one.about), one, el("p", {}, words(one.summary)),
        one.locations.length ? el("p", { class: "sub mono" }, one.locations.join(", ")) : null, one.evidence ? folded("Evidence", one.evidence) : null), 5));
  }

  function makers(one) {
    return listed(one.makers.map((maker) => taskLink(maker)));
  }

  function commitRow(commit, byId) {
    const needed = commit.needed_by.map((id) => el("span", { class: "mono", title: byId.get(id) || null }, id.slice(0, 8)));
    return el("li", { class: "commit" },
      el("span", { class: "rank " + (commit.rank ? "fix" : "") }, commit.rank || "·"),
      el("div", { class: "commit-body" },
        el("div", { class: "commit-title" }, el("span", { class: "title" }, words(commit.title)), el("span", { class: "tag" }, commit.kind), el("code", { class: "sha" }, commit.id.slice(0, 8))),
        commit.because ? el("p", { class: "sub" }, words(commit.because)) : null,
        el("p", { class: "sub" }, "by ", makers(commit)),
        commit.flags.length ? el("ul", { class: "flags" }, commit.flags.map((flag) => el("li", {}, words(flag)))) : null,
        needed.length ? el("p", { class: "sub tone-warn" }, "reverting it takes along ", listed(needed)) : null));
  }

  function branch(value) {
    const found = value.branch;
    if (!found) return section("Branch", null, el("p", { class: "sub" }, value.run.state === "running" ? "Not integrated yet." : "Nothing was integrated."));
    const byId = new Map(found.commits.map((commit) => [commit.id, commit.title]));
    const still = value.tests.failing.length;
    const colour = { true: pill("fixed", still ? `green: no test got worse; ${still} still not passing` : "green: its suite passes as measured"), false: pill("failed", "red"), null: pill("waiting", "not measured") }[String(found.green)];
    return section("Branch", found.commits.length,
      el("div", { class: "branch-head" }, el("code", { class: "branch-name" }, found.name || "no branch"), found.name ? colour : null,
        found.name ? el("code", { class: "dim" }, `git log -p ${value.run.base.slice(0, 8)}..${found.name}`) : null),
      found.narrative ? el("details", { class: "folded", open: true }, el("summary", {}, "In the integrator's words"), prose(found.narrative)) : null,
      el("ol", { class: "commits" }, some(found.commits, (commit) => commitRow(commit, byId), 40)),
      still ? el("p", { class: "sub" }, "Fails at the tip and does not count, since it did before or is flaky: ", listed(value.tests.failing.map((one) => taskLink(one)))) : null,
      found.failures.map((one) => folded(`Fails at the tip: ${one.test}`, one.text)),
      found.dropped.length ? el("p", { class: "sub" }, "Dropped in review: ", listed(found.dropped.map((one) => taskLink(one)))) : null,
      found.accepted.length ? el("p", { class: "sub" }, "Accepted by a person: ", listed(found.accepted.map((one) => taskLink(one)))) : null);
  }

  function aside(value) {
    if (!value.aside.length) return null;
    return section("Set aside", value.aside.length, some(value.aside, (one) => el("article", { class: "ask" },
      el("div", {}, makers(one), one.against.length ? [el("span", { class: "dim" }, " against "), listed(one.against.map((other) => taskLink(other, other.agent)))] : null),
      el("p", {}, words(one.reason)),
      one.branch ? el("p", { class: "sub" }, "kept on ", el("code", {}, one.branch)) : null,
      one.evidence.map((text) => folded(text.split("\n")[0].slice(0, 200), text))), 10));
  }

  function begin(value) {
    const trends = Object.entries(value.history.counts);
    return section("Before the agents", null, el("dl", { class: "lines" },
      value.lines.map((line) => [el("dt", {}, line.name), el("dd", {}, words(line.text), line.seconds === null ? null : el("span", { class: "dim" }, " · " + duration(line.seconds)))]),
      value.history.against ? [el("dt", {}, "history"), el("dd", {}, `against run ${value.history.against}: `, trends.length
        ? listed(trends.map(([word, count]) => el("a", { href: "#tasks?q=" + encodeURIComponent(word) }, `${count} ${word}`))) : "the same")] : null));
  }

  function clusterRow(one, open) {
    const rest = Object.entries(one.verdicts).map(([kind, count]) => el("span", { class: tone(kind) }, `${count} ${kind.replace("-", " ")}`));
    return el("details", { class: "cluster", open: open || null },
      el("summary", {}, el("span", { class: "badge" }, one.count), el("span", { class: "mono grow" }, one.title), el("span", { class: "sub" }, listed(rest, " · "),
        one.passing === null ? null : [rest.length ? " · " : "", el("b", {}, `${one.passing} of ${one.count} pass on the branch`)])),
      el("p", { class: "members" }, listed(one.tests.slice(0, 60).map((test) => taskLink(test))), one.tests.length > 60 ? `, and ${one.count - 60} more` : ""),
      one.example ? window.mngrAnsi.pre(one.example, 80) : null);
  }

  page("run", async () => {
    const root = el("div", {});
    const draw = (value) => root.replaceChildren(...[
      el("div", { class: "head" }, head(value)), tabs(value, "run"), tiles(value), window.mngrChart(value.chart),
      el("div", { class: "columns" }, el("div", {}, asks(value), branch(value), aside(value)),
        el("div", {}, begin(value),
          value.clusters.length ? section("Failures at the base", value.clusters.length, value.clusters.slice(0, 6).map((one) => clusterRow(one)),
            value.clusters.length > 6 ? el("p", {}, el("a", { href: "#failures" }, `all ${value.clusters.length}`)) : null) : null,
          value.changes.length ? section("On the way", value.changes.length, changes(value.changes.slice(-8), value)) : null)),
    ].filter(Boolean));
    draw(await load("run"));
    return { id: "run", trail: [home()], content: [root], refresh: (value) => redrawn(root, () => draw(value)) };
  });

  function changes(list, value) {
    return el("ol", { class: "events" }, list.map((one) => el("li", {}, el("span", { class: "when" }, "+" + duration(Math.max(0, one.at - value.run.began_at))), el("span", {}, words(one.text)))));
  }

  // Something other than a table on a page of its own, drawn anew when the run goes on.
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

  plainPage("decisions", "Decisions", (value) => [
    section("What was decided, and why", value.decisions.length, value.decisions.length ? el("ol", { class: "events" }, value.decisions.map((one) => el("li", {},
      el("span", { class: "when" }, "+" + duration(Math.max(0, one.at - value.run.began_at))),
      el("span", {}, one.about.length ? [listed(one.about.map((other) => taskLink(other))), ": "] : null, el("b", {}, words(one.what)), " – ", words(one.because)))))
      : el("p", { class: "sub" }, "Nothing yet.")),
    value.changes.length ? section("On the way", value.changes.length, changes(value.changes, value)) : null,
  ]);

  page("tasks", async (_, state) => {
    const value = await load("run");
    const href = (task) => "#task/" + task.key;
    const nav = el("div", {}, tabs(value, "tasks"));
    const table = window.mngrTable({
      rows: value.tasks, state, noun: "task", class: "tasks", href,
      empty: "No tasks yet.", defaultSort: "verdict",
      search: (task) => [task.name, task.file, task.slug, task.verdict, task.why, task.before, task.trend, task.signature, ...task.flags].join("\n"),
      filter: { value: (task) => task.kind, order: value.order, label: (kind) => kind.replace("-", " ") },
      columns: [
        { key: "verdict", title: "Verdict", value: (task) => task.rank, class: "outcome", cell: (task) => pill(task.kind, task.verdict) },
        { key: "name", title: "Test", value: (task) => task.file + "::" + task.name, class: "grow", cell: (task) => [
          el("a", { class: "mono", href: href(task) }, task.name), el("div", { class: "sub", title: task.why }, task.why || task.file)] },
        { key: "before", title: "Before → after", value: (task) => task.before + task.after, class: "change", cell: (task) => [outcome(task.before), " → ", outcome(task.at_tip || task.after)] },
        { key: "flags", title: "Look at", first: "-", value: (task) => task.flags.length, class: "flagged", cell: (task) => [task.flags.map((flag) => el("span", { class: "tag warn" }, flag)),
          task.trend ? el("span", { class: "tag" }, task.trend) : null] },
        { key: "attempts", title: "Tries", first: "-", value: (task) => task.attempts, class: "number tries", cell: (task) => task.attempts || "" },
        { key: "cost", title: "Cost", first: "-", value: (task) => task.cost_usd || task.tokens / 1e9, class: "number cost", cell: (task) => money(task.cost_usd) || thousands(task.tokens) },
        { key: "seconds", title: "Time", first: "-", value: (task) => task.seconds, class: "number", cell: (task) => took(task.seconds) },
      ],
    });
    return {
      id: "run", trail: [home(), { text: "Tasks", href: "#tasks" }], content: [nav, table.root], onkey: table.onkey,
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
