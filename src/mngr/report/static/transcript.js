// The transcript of a test: its commands with their output and expectations, its tutorial blocks, how it failed.
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

  function draw(events, start, jump, linked) {
    const items = grouped(events);
    return items.length ? items.map((item) => drawItem(item, start, jump, linked)) : [el("p", { class: "empty" }, "Nothing was run.")];
  }

  function blocks(texts) {
    return texts.flatMap((text, at) => drawBlock(text, at, texts.length));
  }

  // The moments of the commands, for a player.
  function moments(events) {
    return events.filter((event) => event.type === "command" || event.type === "spawn")
      .map((event) => ({ time: event.time, text: event.command.split("\n")[0].slice(0, 80) }));
  }

  function mark(root, wanted) {
    for (const card of root.querySelectorAll(".card")) card.classList.toggle("now", card.id === "command-" + wanted);
  }

  // While a recording plays, the command of that moment is marked.
  function follow(root, time) {
    let last = null;
    for (const card of root.querySelectorAll(".card")) if (Number(card.dataset.time) <= time + 0.05) last = card;
    mark(root, last ? last.id.replace("command-", "") : "");
  }

  window.mngrTranscript = { draw, blocks, moments, mark, follow, failure: drawFailure };
})();
