// What the pages of a `mngr tmr` run share: verdicts, links to tasks, patches, texts that fold.
"use strict";

(function () {
  const { el, duration } = window.mngr;
  const ansi = window.mngrAnsi;
  const MARKS = {
    fixed: "✓", improved: "+", unchanged: "=", held: "!", blocked: "‖", refuted: "✗", refused: "✗", unclaimed: "?", failed: "✗",
    "not-started": "–", running: "●", launching: "◌", collecting: "◌", checking: "◌", waiting: "◌",
  };
  const TONES = {
    fixed: "good", improved: "good", unchanged: "calm", held: "warn", blocked: "warn", refuted: "bad", refused: "bad", unclaimed: "warn",
    failed: "bad", "not-started": "calm", running: "busy", launching: "busy", collecting: "busy", checking: "busy", waiting: "calm",
    pass: "good", passed: "good", xfailed: "good", fail: "bad", timeout: "bad", crashed: "bad", broken: "bad", flaky: "warn", skipped: "calm",
  };

  function tone(kind) {
    return "tone-" + (TONES[kind] || "calm");
  }

  function pill(kind, text) {
    return el("span", { class: "pill " + tone(kind) }, el("span", { "aria-hidden": "true" }, MARKS[kind] || "·"), " " + (text || kind));
  }

  // What a test did, in a word with its colour.
  function outcome(word) {
    return word ? el("span", { class: "outcome-word " + tone(word) }, word) : el("span", { class: "dim" }, "–");
  }

  function meter(counts, order, label) {
    const total = Object.values(counts).reduce((sum, number) => sum + number, 0);
    const told = order.filter((kind) => counts[kind]).map((kind) => `${counts[kind]} ${kind.replace("-", " ")}`).join(", ");
    const made = el("div", { class: "meter", role: "img", "aria-label": told || label, title: told });
    for (const kind of order) {
      if (!counts[kind]) continue;
      const part = el("span", { class: tone(kind) });
      part.style.flexGrow = String(counts[kind] / total);
      made.append(part);
    }
    return made;
  }

  function taskLink(one, text) {
    const shown = text || one.slug || one.name;
    return one.key ? el("a", { class: "mono", href: "#task/" + one.key, title: one.name || one.agent || null }, shown) : el("span", { class: "mono" }, shown);
  }

  function listed(nodes, mark = ", ") {
    return nodes.flatMap((node, at) => (at ? [mark, node] : [node]));
  }

  function section(title, count, ...content) {
    return el("section", { class: "panel" },
      el("h2", {}, title, count === null || count === undefined ? null : el("span", { class: "badge" }, count)), content);
  }

  // The first of a long list; the others come when they are asked for.
  function some(items, draw, most = 20) {
    if (items.length <= most + 5) return items.map(draw);
    const rest = el("button", { type: "button", class: "fold", onclick: () => rest.replaceWith(...items.slice(most).map(draw)) }, `show ${items.length - most} more`);
    return [...items.slice(0, most).map(draw), rest];
  }

  // Long text from a program or an agent, folded until asked for. What is not opened is not drawn.
  function folded(summary, text, open) {
    const box = el("details", { class: "folded", open: open || null }, el("summary", {}, summary));
    const fill = () => {
      if (box.open && box.children.length === 1) box.append(ansi.pre(text));
    };
    box.addEventListener("toggle", fill);
    if (open) box.append(ansi.pre(text));
    return box;
  }

  // Draws anew, with those parts open that somebody opened, or closed that somebody closed.
  function redrawn(root, draw) {
    const name = (one) => one.querySelector("summary").textContent;
    const before = new Map([...root.querySelectorAll("details")].map((one) => [name(one), one.open]));
    draw();
    for (const one of root.querySelectorAll("details")) if (before.has(name(one))) one.open = before.get(name(one));
  }

  // Code in backticks becomes <code>; nothing else of a text means anything.
  function words(text) {
    return text.split(/(`[^`\n]{1,200}`)/).map((part) => (/^`[^`]+`$/.test(part) ? el("code", {}, part.slice(1, -1)) : part));
  }

  // A text that an agent wrote for people: paragraphs, lists and fenced code, no more.
  function prose(text) {
    const made = el("div", { class: "prose" });
    const fences = text.split(/^```[^\n]*$/m);
    fences.forEach((part, at) => {
      if (at % 2) return made.append(el("pre", { class: "block" }, part.replace(/^\n/, "")));
      for (const paragraph of part.split(/\n\s*\n/)) {
        if (!paragraph.trim()) continue;
        const heading = /^#{1,6}\s+([^\n]*)$/.exec(paragraph.trim());
        made.append(heading ? el("h4", {}, words(heading[1])) : el("p", {}, words(paragraph.trim())));
      }
      return null;
    });
    return made;
  }

  function lineClass(line) {
    if (line.startsWith("@@")) return "hunk";
    if (line.startsWith("+")) return "added";
    if (line.startsWith("-")) return "removed";
    return line.startsWith("\\") ? "meta-line" : "";
  }

  function filePatch(text) {
    const lines = text.replace(/\n$/, "").split("\n");
    const start = lines.findIndex((line) => line.startsWith("@@"));
    const head = start < 0 ? lines : lines.slice(0, start);
    const body = start < 0 ? [] : lines.slice(start);
    const name = (/^diff --git "?a\/.*? "?b\/(.*?)"?$/.exec(head[0]) || [null, head[0]])[1];
    const notes = head.slice(1).filter((line) => /^(new file|deleted file|old mode|new mode|Binary|Subproject)/.test(line));
    const count = (mark) => body.filter((line) => line.startsWith(mark)).length;
    const code = el("pre", { class: "patch" });
    for (const line of body) code.append(el("span", { class: lineClass(line) }, line || " "), "\n");
    return el("details", { class: "file-patch", open: true },
      el("summary", {}, el("span", { class: "mono" }, name), el("span", { class: "adds" }, "+" + count("+")), el("span", { class: "subs" }, "−" + count("-")),
        notes.length ? el("span", { class: "dim" }, notes.join(", ")) : null),
      body.length ? code : null);
  }

  // Only a newline ends a line of a patch: any other sign for that is text of the file.
  function patch(value) {
    const parts = value.text.split(/(?<![^\n])(?=diff --git )/).filter((part) => part.trim());
    return [value.note ? el("p", { class: "cut" }, value.note) : null, parts.map(filePatch)];
  }

  function money(usd) {
    return usd ? "$" + (usd < 10 ? usd.toFixed(2) : Math.round(usd).toLocaleString("en")) : "";
  }

  function thousands(number) {
    if (!number) return "";
    return number < 1000 ? String(number) : number < 999_500 ? Math.round(number / 1000) + " k" : (number / 1e6).toFixed(1) + " M";
  }

  function bytes(count) {
    return count < 1000 ? count + " B" : count < 1e6 ? Math.round(count / 1000) + " kB" : (count / 1e6).toFixed(1) + " MB";
  }

  function took(seconds) {
    return seconds === null || seconds === undefined ? "" : duration(seconds);
  }

  window.mngrTmr = { pill, outcome, meter, taskLink, listed, section, some, folded, redrawn, words, prose, patch, money, thousands, bytes, took, tone };
})();
