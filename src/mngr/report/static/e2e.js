// The pages of end-to-end test runs: all runs, one run's tests, one test with block, transcript and recordings.
"use strict";

(function () {
  const { el, load, page, site, moment, duration } = window.mngr;
  const ORDER = ["failed", "error", "unfinished", "running", "xpassed", "passed", "xfailed", "skipped"];
  const MARKS = { passed: "✓", failed: "✗", error: "✗", skipped: "–", xfailed: "≈", xpassed: "!", running: "●", unfinished: "?" };

  function pill(outcome) {
    return el("span", { class: "pill is-" + outcome }, el("span", { "aria-hidden": "true" }, MARKS[outcome] || "?"), " " + outcome);
  }

  function home() {
    return { text: site().title, href: "#" + site().home };
  }

  function proportions(counts) {
    const total = Object.values(counts).reduce((sum, number) => sum + number, 0);
    const label = ORDER.filter((outcome) => counts[outcome]).map((outcome) => `${counts[outcome]} ${outcome}`).join(", ");
    const made = el("div", { class: "meter", role: "img", "aria-label": label || "no tests", title: label });
    for (const outcome of ORDER) {
      if (!counts[outcome]) continue;
      const part = el("span", { class: "is-" + outcome });
      part.style.flexGrow = String(counts[outcome] / total);
      made.append(part);
    }
    return made;
  }

  function bad(counts) {
    return (counts.failed || 0) + (counts.error || 0) + (counts.xpassed || 0) + (counts.unfinished || 0);
  }

  page("runs", async (_, state) => {
    const { runs } = await load("runs");
    const table = window.mngrTable({
      rows: runs, state, noun: "run", defaultSort: "-started", class: "runs",
      empty: site().live ? "No runs yet. This page shows them as soon as pytest writes one." : "No runs.",
      search: (run) => [run.name, ...run.args].join(" "),
      href: (run) => "#run/" + run.key,
      columns: [
        { key: "name", title: "Run", value: (run) => run.name, class: "grow",
          cell: (run) => [el("a", { href: "#run/" + run.key }, run.name), el("div", { class: "sub mono" }, ["pytest", ...run.args].join(" "))] },
        { key: "result", title: "Result", first: "-", value: (run) => bad(run.counts), class: "result",
          cell: (run) => [proportions(run.counts), el("div", { class: "sub" }, told(run.counts))] },
        { key: "tests", title: "Tests", first: "-", value: (run) => run.total, class: "number total", cell: (run) => run.total },
        { key: "duration", title: "Duration", first: "-", value: (run) => run.duration, class: "number",
          cell: (run) => (run.running ? "running" : duration(run.duration)) },
        { key: "started", title: "Started", first: "-", value: (run) => run.started_at, class: "time", cell: (run) => moment(run.started_at) },
      ],
    });
    return {
      id: "runs", trail: [home()], content: [table.root], onkey: table.onkey,
      refresh: (value) => table.update(value.runs),
    };
  });

  function told(counts) {
    const parts = ORDER.filter((outcome) => counts[outcome]).map((outcome) => el("span", { class: "is-" + outcome }, `${counts[outcome]} ${outcome}`));
    return parts.length ? parts.flatMap((part, at) => (at ? [" · ", part] : [part])) : "no tests";
  }

  function runHead(run) {
    const facts = [run.started_at ? "started " + moment(run.started_at) : null, run.running ? "running" : duration(run.duration),
      run.exit_status === null ? (run.running ? null : "pytest did not end") : `pytest exit status ${run.exit_status}`, run.python && "Python " + run.python];
    return [
      el("h1", {}, run.name),
      el("p", { class: "facts" }, facts.filter(Boolean).join(" · ")),
      proportions(run.counts),
      el("p", { class: "told" }, told(run.counts)),
    ];
  }

  page("run", async ([key], state) => {
    const id = "run/" + key;
    const value = await load(id);
    const head = el("div", { class: "head" }, runHead(value.run));
    const href = (test) => `#test/${key}/${test.key}`;
    const table = window.mngrTable({
      rows: value.tests, state, noun: "test", class: "tests", href,
      empty: value.run.running ? "No test has started yet." : "This run holds no e2e tests.",
      search: (test) => [test.name, test.file, test.outcome, test.doc, test.failure, ...test.cites].join("\n"),
      filter: { value: (test) => test.outcome, order: ORDER, label: (outcome) => outcome },
      defaultSort: "outcome",
      rowClass: (test) => "row-" + test.outcome,
      columns: [
        { key: "outcome", title: "Result", value: (test) => ORDER.indexOf(test.outcome), cell: (test) => pill(test.outcome), class: "outcome" },
        { key: "name", title: "Test", value: (test) => test.name, class: "grow", cell: (test) => [
          el("a", { class: "mono", href: href(test) }, test.name),
          test.failure ? el("div", { class: "sub why", title: test.failure }, test.failure) : test.doc ? el("div", { class: "sub" }, test.doc) : null,
        ] },
        { key: "cites", title: "Tutorial block", value: (test) => test.cites[0] || null, class: "cites", cell: (test) => cited(test.cites) },
        { key: "file", title: "File", value: (test) => `${test.file}:${String(test.line).padStart(6, "0")}`, class: "file mono",
          cell: (test) => el("span", { title: `${test.file}:${test.line}` }, test.file.split("/").pop(), el("span", { class: "dim" }, ":" + test.line)) },
        { key: "recordings", title: "Casts", first: "-", value: (test) => test.recordings, class: "number casts", cell: (test) => test.recordings || "" },
        { key: "duration", title: "Duration", first: "-", value: (test) => test.duration, class: "number",
          cell: (test) => duration(test.duration) },
      ],
    });
    return {
      id, content: [head, table.root], onkey: table.onkey,
      trail: site().home === "run/" + key ? [home()] : [home(), { text: value.run.name, href: "#run/" + key }],
      refresh(now) {
        head.replaceChildren(...runHead(now.run));
        table.update(now.tests);
      },
    };
  });

  function cited(lines) {
    if (!lines.length) return null;
    const comment = lines[0].startsWith("#");
    return [el("span", { class: comment ? "" : "mono", title: lines.join("\n") }, comment ? lines[0].replace(/^#+\s*/, "") : lines[0]),
      lines.length > 1 ? el("span", { class: "dim" }, ` +${lines.length - 1}`) : null];
  }

  page("test", async ([runKey, key, number]) => {
    const id = `test/${runKey}/${key}`;
    const [value, run] = await Promise.all([load(id), load("run/" + runKey)]);
    return window.mngrTestPage({ id, key, runKey, number, value, run, pill, trail: trailOf(runKey, run) });
  });

  function trailOf(runKey, run) {
    const list = { text: run.run.name, href: "#run/" + runKey };
    return site().home === "run/" + runKey ? [home()] : [home(), list];
  }
})();
