// What the pages of a `mngr tmr` run share: verdicts, links to tasks, patches, texts that fold.
"use strict";

(function () {
  const { el } = window.mngr;
  const ansi = window.mngrAnsi;
  const MARKS = {
    fixed: "✓", "fixed-together": "✓", "new-behaviour": "!", "expectation-changed": "!", stronger: "+", same: "=", improved: "+", unchanged: "=",
    held: "!", unproven: "!", blocked: "‖", "set-aside": "⇤", refuted: "✗", refused: "✗", unclaimed: "?", failed: "✗",
    "not-started": "–", running: "●", launching: "◌", collecting: "◌", checking: "◌", waiting: "◌",
  };
  const TONES = {
    fixed: "good", "fixed-together": "good", "new-behaviour": "warn", "expectation-changed": "warn", stronger: "good", same: "calm", improved: "good",
    unchanged: "calm", held: "warn", unproven: "warn", blocked: "warn", "set-aside": "warn", refuted: "bad", refused: "bad", unclaimed: "warn",
    failed: "bad", "not-started": "calm", running: "busy", launching: "busy", collecting: "busy", checking: "busy", waiting: "calm",
    pass: "good", xfail: "good", fail: "bad", timeout: "bad", crash: "bad", broken: "bad", missing: "bad", "not run": "bad", flaky: "warn", skip: "calm",
  };
  // One word for what a test did, whoever says it.
  const SHORT = { passed: "pass", failed: "fail", skipped: "skip", xfailed: "xfail", crashed: "crash" };
  const SIGNS = { good: "✓", bad: "✗", warn: "~", calm: "–" };

  function tone(kind) {
    return "tone-" + (TONES[kind] || "calm");
  }

  function pill(kind, text) {
    return el("span", { class: "pill " + tone(kind) }, el("span", { "aria-hidden": "true" }, MARKS[kind] || "·"), " " + (text || kind));
  }

  // What a test did, in a word with its colour.
  function outcome(word) {
    const short = SHORT[word] || word;
    return word ? el("span", { class: "outcome-word " + tone(short) }, short) : el("span", { class: "dim" }, "–");
  }

  // What a test did at three points that never swap: at the base, at its agent's commit, on the branch.
  function threeMarks(words, points = words.length === 2 ? ["at the base", "on the branch"] : ["at the base", "at its agent's commit", "on the branch"]) {
    const one = (word, at) => {
      const short = SHORT[word] || word;
      const shown = TONES[short] || "calm";
      return el("span", { class: "mark " + (word ? "tone-" + shown : "none"), title: `${points[at]}: ${short || "not measured"}` },
        el("span", { class: "sign", "aria-hidden": "true" }, word ? SIGNS[shown] : "·"), el("span", { class: "word" }, short || "–"));
    };
    return el("span", { class: "marks" }, words.flatMap((word, at) => (at ? [el("span", { class: "to-next", "aria-hidden": "true" }, "→"), one(word, at)] : [one(word, at)])));
  }

  // Where the work of a task is: its commit on the branch, set aside, dropped, or nowhere.
  function placeOf(task) {
    if (task.commit) return el("span", { class: task.in_part ? "tone-warn" : "tone-good", title: task.in_part ? "part of it is set aside" : "on the branch" },
      "✓ ", el("code", { class: "sha" }, task.commit.slice(0, 8)), task.in_part ? " in part" : null);
    return task.place ? el("span", { class: "tone-warn" }, task.place) : el("span", { class: "dim" }, "—");
  }

  // A command to type, with a button that copies it.
  function command(text, label) {
    const code = el("code", {}, text);
    const copied = () => {
      button.textContent = "copied";
      setTimeout(() => (button.textContent = "copy"), 1500);
    };
    const button = el("button", { type: "button", class: "copy", "aria-label": `Copy: ${text}`, onclick: () => copyText(text, code).then(copied, () => null) }, "copy");
    return el("span", { class: "command-line" }, label ? el("span", { class: "label" }, label) : null, el("span", { class: "typed-line" }, code, button));
  }

  async function copyText(text, node) {
    if (navigator.clipboard) return navigator.clipboard.writeText(text).catch(() => copySelected(node));
    return copySelected(node);
  }

  function copySelected(node) {
    getSelection().selectAllChildren(node);
    if (!document.execCommand("copy")) throw new Error("not copied");
    getSelection().removeAllRanges();
  }

  // A few lines of a change, with their file above them.
  function excerpt(value) {
    if (!value) return null;
    const code = el("pre", { class: "patch" });
    for (const line of value.text.split("\n")) code.append(el("span", { class: lineClass(line) }, line || " "), "\n");
    const left = value.left > 0 ? el("span", { class: "dim" }, `${value.left} more changed ${value.left === 1 ? "line" : "lines"}`) : null;
    return el("div", { class: "excerpt" }, el("div", { class: "excerpt-head" }, el("span", { class: "mono" }, value.path), left), code);
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
    const shown = text || one.name || one.slug;
    return one.key ? el("a", { class: "mono", href: "#task/" + one.key, title: one.slug || one.name || null }, shown) : el("span", { class: "mono" }, shown);
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

  // Draws again, with those parts open that somebody opened, or closed that somebody closed.
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

  function fileName(text) {
    const line = text.split("\n", 1)[0];
    return (/^diff --git "?a\/.*? "?b\/(.*?)"?$/.exec(line) || [null, line])[1];
  }

  function filePatch(text) {
    const lines = text.replace(/\n$/, "").split("\n");
    const start = lines.findIndex((line) => line.startsWith("@@"));
    const head = start < 0 ? lines : lines.slice(0, start);
    const body = start < 0 ? [] : lines.slice(start);
    const name = fileName(text);
    const notes = head.slice(1).filter((line) => /^(new file|deleted file|old mode|new mode|Binary|Subproject)/.test(line));
    const count = (mark) => body.filter((line) => line.startsWith(mark)).length;
    const code = el("pre", { class: "patch" });
    for (const line of body) code.append(el("span", { class: lineClass(line) }, line || " "), "\n");
    return el("details", { class: "file-patch", open: true },
      el("summary", {}, el("span", { class: "mono" }, name), el("span", { class: "adds" }, "+" + count("+")), el("span", { class: "subs" }, "−" + count("-")),
        notes.length ? el("span", { class: "dim" }, notes.join(", ")) : null),
      body.length ? code : null);
  }

  // File by file, the file `first` before the others. Only a newline ends a line of a patch: any other sign for that is
  // text of the file.
  function patch(value, first) {
    const parts = value.text.split(/(?<![^\n])(?=diff --git )/).filter((part) => part.trim());
    parts.sort((a, b) => (fileName(b) === first) - (fileName(a) === first));
    return [value.note ? el("p", { class: "cut" }, value.note) : null, parts.map(filePatch)];
  }

  function money(usd) {
    return usd ? "$" + usd.toLocaleString("en", { minimumFractionDigits: 2, maximumFractionDigits: 2 }) : "";
  }

  function thousands(number) {
    if (!number) return "";
    return number < 1000 ? String(number) : number < 999_500 ? Math.round(number / 1000) + " k" : (number / 1e6).toFixed(1) + " M";
  }

  function bytes(count) {
    return count < 1000 ? count + " B" : count < 1e6 ? Math.round(count / 1000) + " kB" : (count / 1e6).toFixed(1) + " MB";
  }

  // How long work took. Written the same way in the terminal.
  function took(seconds) {
    if (seconds === null || seconds === undefined) return "";
    if (seconds < 9.95) return seconds.toFixed(1) + " s";
    return seconds < 59.5 ? Math.round(seconds) + " s" : long(seconds);
  }

  function long(seconds) {
    const whole = Math.round(seconds);
    const two = (number) => String(number).padStart(2, "0");
    return whole < 3600 ? `${Math.floor(whole / 60)} min ${two(whole % 60)} s` : `${Math.floor(whole / 3600)} h ${two(Math.floor((whole % 3600) / 60))} min`;
  }

  window.mngrTmr = { pill, outcome, threeMarks, placeOf, command, excerpt, meter, taskLink, listed, section, some, folded, redrawn, words, prose, patch, money, thousands, bytes, took, tone };
})();
