// The first page of a `mngr tmr` run: may it be merged, what must be looked at before, the branch, then the numbers.
"use strict";

(function () {
  const { el, moment, duration } = window.mngr;
  const { pill, meter, taskLink, listed, section, some, folded, words, prose, money, thousands, took, tone, command, excerpt } = window.mngrTmr;
  const BEFORE = ["fail", "broken", "flaky", "not measured", "skipped", "pass"];
  const KINDS = {
    "on the branch": ["warn", "!", "on the branch"], unproven: ["warn", "!", "unproven"], held: ["warn", "!", "held"], blocked: ["warn", "‖", "blocked"],
    raised: ["busy", "?", "raised by its agent"], "set aside": ["warn", "⇤", "set aside"], flaky: ["calm", "~", "flaky"],
  };

  function stateTone(run) {
    if (run.state === "running") return "running";
    if (run.state !== "over") return "blocked";
    return run.exit_code === 1 ? "failed" : "unchanged";
  }

  function head(value) {
    const { run } = value;
    const project = run.repo.split("/").filter(Boolean).pop();
    const facts = [run.began_at ? moment(run.began_at) : null, took(run.seconds), money(run.cost_usd), run.tokens ? `${thousands(run.tokens)} tokens` : null,
      run.unpriced ? `${run.unpriced} answers without a known price` : null, "base " + run.base.slice(0, 8), run.type && `${run.type} agents`,
      run.attempts && `${run.attempts} attempts, at most ${value.chart.most} at once`, run.budget_usd ? `budget $${run.budget_usd}` : null, run.state === "over" ? null : run.because];
    return [
      el("div", { class: "titles" }, el("h1", { class: "mono" }, project ? [el("span", { class: "dim" }, project + " / "), run.id] : run.id), pill(stateTone(run), run.state === "over" ? "finished" : run.state)),
      el("p", { class: "facts" }, facts.filter(Boolean).join(" · ")),
    ];
  }

  function headline(value) {
    const { tone: kind, title, more, commands } = value.headline;
    return el("section", { class: "headline is-" + kind, "aria-label": "Result" },
      el("p", { class: "answer" }, words(title)), more.length ? el("p", { class: "answer-more" }, listed(more.map(words), " ")) : null,
      commands.length ? el("div", { class: "commands" }, commands.map(([label, text]) => command(text, label))) : null);
  }

  function card(one) {
    const [colour, sign, text] = KINDS[one.kind] || ["calm", "·", one.kind];
    const many = one.count > 1;
    const names = many
      ? el("details", { class: "folded" }, el("summary", {}, `${one.count} tests`), el("p", { class: "members" }, listed(one.tests.map((test) => taskLink(test, short(test.name)))), one.count > one.tests.length ? `, and ${one.count - one.tests.length} more` : ""))
      : null;
    return el("article", { class: "ask" },
      el("div", { class: "ask-head" }, el("span", { class: "pill tone-" + colour }, el("span", { "aria-hidden": "true" }, sign), " " + text),
        many ? el("b", {}, `${one.count} tests ask the same`) : taskLink(one.tests[0], short(one.tests[0].name)), one.verdict !== one.kind ? el("span", { class: "tag" }, one.verdict) : null, one.commit ? el("code", { class: "sha" }, one.commit.slice(0, 8)) : null),
      el("p", { class: "question" }, words(one.text)), one.remarks.map((remark) => el("p", { class: "sub" }, words(remark))),
      excerpt(one.excerpt), names, one.evidence.length ? folded("Evidence", one.evidence.join("\n\n")) : null,
      el("div", { class: "commands" }, one.commands.map(([label, line]) => command(line, label))));
  }

  function short(name) {
    return name.includes("::") ? name.split("::").slice(1).join("::") : name;
  }

  function queue(value) {
    if (!value.queue.length) return null;
    return section("Look at this first", value.queue.length, some(value.queue, card, 12));
  }

  function commitRow(commit, byId) {
    const needed = commit.needed_by.map((id) => el("span", { class: "mono", title: byId.get(id) || null }, id.slice(0, 8)));
    return el("li", { class: "commit" },
      el("span", { class: "rank " + (commit.rank ? "fix" : "") }, commit.rank || "·"),
      el("div", { class: "commit-body" },
        el("div", { class: "commit-title" }, el("span", { class: "title" }, words(commit.title)), el("span", { class: "tag" }, commit.kind), el("code", { class: "sha" }, commit.id.slice(0, 8))),
        commit.because ? el("p", { class: "sub" }, words(commit.because)) : null,
        el("p", { class: "sub" }, listed(commit.makers.slice(0, 12).map((maker) => taskLink(maker))), commit.makers.length > 12 ? `, and ${commit.makers.length - 12} more` : ""),
        commit.flags.length ? el("ul", { class: "flags" }, commit.flags.map((flag) => el("li", {}, words(flag)))) : null,
        needed.length ? el("p", { class: "sub tone-warn" }, "needed by ", listed(needed)) : null));
  }

  function branch(value) {
    const found = value.branch;
    if (!found) return section("Branch", null, el("p", { class: "sub" }, value.run.state === "running" ? "Not integrated yet." : "Nothing was integrated."));
    if (!found.name) return null;
    const byId = new Map(found.commits.map((commit) => [commit.id, commit.title]));
    const still = value.tests.failing;
    const colour = { true: pill("fixed", "green"), false: pill("failed", "red"), null: pill("waiting", "not measured") }[String(found.green)];
    return section("Branch", found.commits.length,
      el("div", { class: "branch-head" }, el("code", { class: "branch-name" }, found.name), colour, command(`git log -p ${value.run.base.slice(0, 8)}..${found.name}`)),
      found.narrative ? el("details", { class: "folded", open: true }, el("summary", {}, "In the integrator's words"), prose(found.narrative)) : null,
      el("ol", { class: "commits" }, some(found.commits, (commit) => commitRow(commit, byId), 40)),
      still.length ? el("p", { class: "sub" }, `Seen to fail at the tip, as at the base or because they are unstable (${still.length}): `, listed(still.slice(0, 30).map((one) => taskLink(one, short(one.name)))), still.length > 30 ? ", …" : "") : null,
      found.failures.map((one) => folded(`Fails at the tip: ${one.test}`, one.text)),
      found.dropped.length ? el("p", { class: "sub" }, "Dropped in review: ", listed(found.dropped.map((one) => taskLink(one)))) : null,
      found.accepted.length ? el("p", { class: "sub" }, "Accepted by a person: ", listed(found.accepted.map((one) => taskLink(one)))) : null);
  }

  function tasksPanel(value) {
    const on = value.tasks.filter((task) => task.commit).length;
    const aside = value.tasks.filter((task) => task.place === "set aside").length;
    const told = [value.branch && value.branch.name ? `${on} on the branch` : null, aside ? `${aside} set aside` : null].filter(Boolean).join(", ");
    return section("Tasks", value.tasks.length, told ? el("p", { class: "sub" }, told) : null, meter(value.verdicts, value.order, "no tasks"),
      el("div", { class: "legend" }, value.order.filter((kind) => value.verdicts[kind]).map((kind) =>
        el("a", { class: tone(kind), href: "#tasks?only=" + kind }, el("b", {}, value.verdicts[kind]), " " + kind.replaceAll("-", " ")))));
  }

  function testsPanel(value) {
    const { tests } = value;
    const sum = (counts) => Object.values(counts).reduce((total, number) => total + number, 0);
    const side = (counts, text, more) => el("div", { class: "side" }, el("span", { class: "big" }, counts.pass || 0, el("small", {}, ` of ${sum(counts)}`)), el("span", { class: "sub" }, text),
      el("span", { class: "sub" }, listed([...BEFORE.filter((word) => counts[word] && word !== "pass").map((word) => el("span", { class: tone(word) }, `${counts[word]} ${word}`)), ...more], " · ")));
    const none = (text) => el("div", { class: "side" }, el("span", { class: "sub" }, text));
    return section("Tests", null, el("div", { class: "sides" }, sum(tests.before) ? side(tests.before, "pass at the base", []) : none("no baseline"),
      el("span", { class: "to", "aria-label": "to" }, "→"), tests.after ? side(tests.after, "pass on the branch", tests.new ? [`${tests.new} new`] : []) : none("no branch measured yet")),
    el("p", { class: "sub" }, el("a", { href: "#tests" }, "every test, base → branch")));
  }

  function begin(value) {
    const trends = Object.entries(value.history.counts);
    return section("Before the agents", null, el("dl", { class: "lines" },
      value.lines.map((line) => [el("dt", {}, line.name), el("dd", {}, words(line.text), line.seconds === null ? null : el("span", { class: "dim" }, " · " + duration(line.seconds)))]),
      value.history.against ? [el("dt", {}, "history"), el("dd", {}, `against run ${value.history.against}: `, trends.length
        ? listed(trends.map(([word, count]) => el("a", { href: "#tasks?q=" + encodeURIComponent(word) }, `${count} ${word}`))) : "the same")] : null));
  }

  function hosts(value) {
    if (!value.hosts.length) return null;
    return section("Hosts", value.hosts.length, el("dl", { class: "lines" }, value.hosts.map((one) => [el("dt", { class: "mono" }, one.name), el("dd", {}, words(one.text))])));
  }

  window.mngrOverview = function (value, { tabs, clusterRow, log }) {
    return [
      el("div", { class: "head" }, head(value)), tabs(value, "run"), headline(value),
      el("div", { class: "columns" }, el("div", {}, queue(value), branch(value)),
        el("div", {}, tasksPanel(value), testsPanel(value), begin(value), hosts(value),
          value.clusters.length ? section("Failures at the base", value.clusters.length, value.clusters.slice(0, 6).map((one) => clusterRow(one)),
            value.clusters.length > 6 ? el("p", {}, el("a", { href: "#failures" }, `all ${value.clusters.length}`)) : null) : null,
          value.log.length ? section("Log", value.log.length, log(value.log.slice(-8), value), value.log.length > 8 ? el("p", {}, el("a", { href: "#log" }, `all ${value.log.length}`)) : null) : null)),
      window.mngrChart(value.chart),
    ].filter(Boolean);
  };
})();
