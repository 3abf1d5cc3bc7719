// One test: its blocks and recordings beside the transcript, whose commands jump to their moment.
"use strict";

(function () {
  const { el, duration, moment } = window.mngr;
  const ansi = window.mngrAnsi;

  // Groups the lines of the transcript by the command they belong to, in the order of the commands.
  function grouped(events) {
    const items = [];
    const cards = new Map();
    let last = null; // an expectation that names no command is shown with the one before it
    for (const event of events) {
      const card = cards.get(event.number);
      if (event.type === "command" || event.type === "spawn") {
        const made = { ...event, card: true, parts: [], exit: null };
        cards.set(event.number, made);
        items.push(made);
        last = made;
      } else if (event.type === "output" && card) addOutput(card.parts, event);
      else if (event.type === "exit" && card) card.exit = event;
      else if ((event.type === "keys" || event.type === "expect" || event.type === "cut") && card) card.parts.push(event);
      else if (event.type === "expect" && last) last.parts.push(event);
      else if (event.type === "expect" || event.type === "note" || event.type === "cut") items.push(event);
    }
    return items;
  }

  function addOutput(parts, event) {
    const last = parts[parts.length - 1];
    if (last && last.type === "output" && last.stream === event.stream) last.text += event.text;
    else parts.push({ ...event });
  }

  function drawBlock(text, at, total) {
    const made = el("pre", { class: "block" });
    for (const line of text.trimEnd().split("\n")) made.append(el("span", { class: line.trimStart().startsWith("#") ? "comment" : "" }, line), "\n");
    return [total > 1 ? el("h3", {}, `Tutorial block ${at + 1} of ${total}`) : el("h3", {}, "Tutorial block"), made];
  }

  function drawExpect(event) {
    return el("div", { class: "expect " + (event.passed ? "ok" : "not-ok") },
      el("span", { class: "tick", "aria-label": event.passed ? "passed" : "failed" }, event.passed ? "✓" : "✗"), el("span", {}, event.text));
  }

  function drawCut(event) {
    return el("div", { class: "cut" }, event.text);
  }

  function drawPart(part, jump) {
    if (part.type === "output") {
      const made = ansi.pre(part.text);
      made.classList.add(part.stream === "stderr" ? "stderr" : "stdout");
      if (part.stream === "stderr") made.setAttribute("aria-label", "standard error");
      return made;
    }
    if (part.type === "keys")
      return el("div", { class: "typed" }, el("button", { type: "button", class: "keys", title: "Show this moment", onclick: () => jump(part) },
        el("span", { class: "dim" }, "keys "), part.keys));
    return part.type === "expect" ? drawExpect(part) : drawCut(part);
  }

  function exitBadge(card) {
    if (!card.exit) return el("span", { class: "exit unknown" }, card.type === "spawn" ? "open" : "no exit");
    const { exit_code: code, timed_out: late } = card.exit;
    if (late) return el("span", { class: "exit late" }, "timed out");
    if (code === null) return el("span", { class: "exit unknown" }, "ended");
    return el("span", { class: "exit " + (code === 0 ? "good" : "bad") }, `exit ${code}`);
  }

  function commandText(text) {
    return text.split("\n").map((line, at) => [el("span", { class: "prompt", "aria-hidden": "true" }, at ? "> " : "$ "), line, "\n"]);
  }

  function drawCard(card, start, jump, linked) {
    const line = el("pre", { class: "line" }, commandText(card.command));
    const offset = "+" + duration(Math.max(0, card.time - start));
    const when = linked
      ? el("button", { type: "button", class: "moment", title: "Show this moment of the recording", onclick: () => jump(card) }, "▸ " + offset)
      : el("span", { class: "dim", title: moment(card.time) }, offset);
    const took = card.exit && card.exit.duration !== null ? el("span", { class: "dim" }, duration(card.exit.duration)) : null;
    const head = linked
      ? el("button", { type: "button", class: "command", title: "Show this moment of the recording", "data-number": card.number, onclick: () => jump(card) }, line)
      : el("div", { class: "command", "data-number": card.number }, line);
    return el("article", { class: "card " + card.type, id: "command-" + card.number, "data-time": card.time },
      card.comment ? el("p", { class: "comment" }, "# " + card.comment) : null,
      el("div", { class: "top" }, head, el("div", { class: "meta" }, when, took, exitBadge(card))),
      card.parts.map((part) => drawPart(part, jump)));
  }

  function drawItem(item, start, jump, linked) {
    if (item.card) return drawCard(item, start, jump, linked);
    if (item.type === "note") return el("p", { class: "comment loose" }, "# " + item.text);
    return item.type === "cut" ? drawCut(item) : el("div", { class: "loose" }, drawExpect(item));
  }

  function drawFailure(failure) {
    if (!failure) return null;
    const where = failure.phase && failure.phase !== "call" ? ` in ${failure.phase}` : "";
    return el("section", { class: "failure", "aria-label": "Failure" },
      el("h3", {}, "Failed" + where), ansi.pre(failure.message, 60),
      failure.text && failure.text !== failure.message
        ? el("details", {}, el("summary", {}, "Traceback and transcript as pytest printed them"), ansi.pre(failure.text)) : null);
  }

  function drawHead(value, runKey, neighbours, pill) {
    const { test } = value;
    const step = (other, text, label) => el("a", { class: "step", href: other ? other.href : null, "aria-disabled": other ? null : "true", title: other ? other.name : null, "aria-label": label }, text);
    const facts = [el("span", { class: "mono" }, `${test.file}:${test.line}`), duration(test.duration),
      value.phases && Object.entries(value.phases).map(([name, seconds]) => `${name} ${duration(seconds)}`).join(", "),
      moment(test.started_at)].filter(Boolean);
    return [
      el("div", { class: "titles" }, pill(test.outcome), el("h1", { class: "mono" }, test.name),
        el("span", { class: "steps" }, step(neighbours[0], "←", "Previous test"), step(neighbours[1], "→", "Next test"))),
      el("p", { class: "facts" }, facts.flatMap((fact, at) => (at ? [" · ", fact] : [fact]))),
      value.doc ? el("p", { class: "doc" }, value.doc) : null,
      value.earlier.length ? el("p", { class: "facts" }, "Earlier attempts in this run: ",
        value.earlier.map((other, at) => [at ? ", " : "", el("a", { class: "is-" + other.outcome, href: `#test/${runKey}/${other.key}` }, other.outcome)])) : null,
      value.kept ? el("p", { class: "facts" }, "Its environment was kept in ", el("span", { class: "mono" }, value.kept)) : null,
    ].filter(Boolean);
  }

  function neighboursOf(run, runKey, key) {
    const at = run.tests.findIndex((test) => test.key === key);
    return [-1, 1].map((step) => {
      const other = at < 0 ? null : run.tests[at + step];
      return other ? { href: `#test/${runKey}/${other.key}`, name: other.name } : null;
    });
  }

  // What the recordings of a test are, so that a live page keeps the player unless they changed.
  function signature(value) {
    return JSON.stringify(value.recordings.map((one) => [one.name, one.ended_at, one.problem, one.ended_at && one.bytes]));
  }

  window.mngrTestPage = function ({ id, key, runKey, number, value, run, pill, trail }) {
    const neighbours = neighboursOf(run, runKey, key);
    const head = el("div", { class: "head" });
    const failure = el("div", {});
    const flow = el("div", { class: "flow" });
    const aside = el("aside", { class: "aside" });
    const root = el("div", { class: "test" }, aside, el("section", { class: "transcript", "aria-label": "Transcript" }, failure, flow));
    let recordings = null;
    let drawn = "";
    let start = 0;

    function jump(event) {
      mark(event.number);
      if (recordings) recordings.seek(event.time, event.recording);
    }

    function mark(wanted) {
      for (const card of flow.querySelectorAll(".card"))
        card.classList.toggle("now", card.id === "command-" + wanted);
    }

    // While a recording plays, the command of that moment is marked.
    function follow(time) {
      let last = null;
      for (const card of flow.querySelectorAll(".card")) if (Number(card.dataset.time) <= time + 0.05) last = card;
      mark(last ? last.id.replace("command-", "") : "");
    }

    function drawRecordings() {
      if (recordings) recordings.leave();
      const moments = value.events.filter((event) => event.type === "command" || event.type === "spawn")
        .map((event) => ({ time: event.time, text: event.command.split("\n")[0].slice(0, 80) }));
      recordings = value.recordings.length ? window.mngrRecordings(value.recordings, moments, follow) : null;
      const blocks = value.blocks.map((text, at) => drawBlock(text, at, value.blocks.length));
      aside.replaceChildren(...[...blocks.flat(), recordings && el("h3", {}, value.recordings.length > 1 ? "Recordings" : "Recording"), recordings && recordings.root].filter(Boolean));
      root.classList.toggle("alone", !aside.children.length);
    }

    function draw() {
      start = value.test.started_at;
      const now = signature(value) + value.blocks.length;
      if (now !== drawn) drawRecordings();
      drawn = now;
      head.replaceChildren(...drawHead(value, runKey, neighbours, pill));
      failure.replaceChildren(...[drawFailure(value.failure)].filter(Boolean));
      const linked = Boolean(recordings && recordings.playable());
      const items = grouped(value.events);
      flow.replaceChildren(...items.map((item) => drawItem(item, start, jump, linked)));
      if (!items.length) flow.append(el("p", { class: "empty" }, "Nothing was run."));
    }

    function onkey(event) {
      const at = event.key === "n" ? 1 : event.key === "p" ? 0 : -1;
      if (at >= 0 && neighbours[at]) location.hash = neighbours[at].href;
    }

    draw();
    return {
      id, content: [head, root], onkey,
      trail: [...trail, { text: value.test.name, href: `#${id}` }],
      ready() {
        const wanted = number && value.events.find((event) => String(event.number) === number);
        if (!wanted) return;
        const card = document.getElementById("command-" + number);
        if (card) card.scrollIntoView({ block: "center" });
        jump(wanted);
      },
      refresh(now) {
        value = now;
        draw();
      },
      leave() {
        if (recordings) recordings.leave();
      },
    };
  };
})();
