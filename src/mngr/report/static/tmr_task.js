// One task: claim against measurement, then its changes, conversation, verification and attempts; beside them the
// tutorial block and the recording, in which the agent's commands are moments to jump to.
"use strict";

(function () {
  const { el, duration, moment, keepState } = window.mngr;
  const { pill, outcome, threeMarks, placeOf, listed, folded, redrawn, words, prose, patch, command, money, thousands, bytes, took } = window.mngrTmr;
  const ansi = window.mngrAnsi;
  const transcript = window.mngrTranscript;

  function drawHead(value, run, key) {
    const { task } = value;
    const at = run.tasks.findIndex((other) => other.key === key);
    const step = (other, text, label) => el("a", { class: "step", href: other ? "#task/" + other.key : null, "aria-disabled": other ? null : "true", title: other ? other.name : null, "aria-label": label }, text);
    const facts = [el("span", { class: "mono" }, task.line ? `${task.file}:${task.line}` : task.file), task.agent && el("span", { class: "mono" }, task.host ? `${task.agent} on ${task.host}` : task.agent),
      took(task.seconds), money(task.cost_usd), task.tokens ? thousands(task.tokens) + " tokens" : null, task.started_at ? moment(task.started_at) : null].filter(Boolean);
    return [
      el("div", { class: "titles" }, pill(task.kind, task.verdict), el("h1", { class: "mono" }, task.name),
        el("span", { class: "steps" }, step(run.tasks[at - 1], "←", "Previous task"), step(at < 0 ? null : run.tasks[at + 1], "→", "Next task"))),
      el("p", { class: "facts" }, listed(facts, " · ")),
      el("p", { class: "where" }, threeMarks([task.before, task.after, task.at_tip]), el("span", { class: "sub" }, " base → its commit → branch "), placeOf(task)),
      value.doc ? el("p", { class: "doc" }, value.doc) : null,
    ].filter(Boolean);
  }

  function pair(label, claim, measured, differs) {
    return el("tr", { class: differs ? "differs" : null }, el("th", { scope: "row" }, label), el("td", {}, claim), el("td", {}, measured));
  }

  function many(list, none) {
    return list && list.length ? listed(list.slice(0, 30).map((one) => el("code", {}, one))) : el("span", { class: "dim" }, none);
  }

  // Both sides of the story in one table, row by row.
  function versus(value) {
    const { claim, measured, before, task } = value;
    const nothing = el("span", { class: "dim" }, "does not say");
    const good = (word) => ["passed", "pass", "xfailed", "xfail"].includes(word);
    const said = (word) => (word ? outcome(word) : nothing);
    const differs = Boolean(claim && claim.after && task.after && good(claim.after) !== good(task.after));
    const early = Boolean(claim && claim.before && before && before.verdict !== "flaky" && good(claim.before) !== good(before.verdict));
    const changes = claim && claim.changes.length ? el("ul", { class: "plain" }, claim.changes.map((one) => el("li", {}, el("span", { class: "tag" }, one.kind), " ", words(one.summary), " ",
      el("code", { class: "sha" }, one.commit.slice(0, 8)), el("span", { class: "dim" }, ` importance ${one.importance}`)))) : el("span", { class: "dim" }, claim ? "none" : "");
    const effect = measured.effect === null || measured.effect === undefined ? el("span", { class: "dim" }, "not measured") : [`${measured.effect.length} ${measured.effect.length === 1 ? "test that failed before and now passes" : "tests that failed before and now pass"}`, measured.effect.length ? [": ", many(measured.effect)] : null];
    return el("table", { class: "versus" },
      el("thead", {}, el("tr", {}, el("td", {}), el("th", { scope: "col" }, "The agent says"), el("th", { scope: "col" }, "Measured in clean checkouts"))),
      el("tbody", {},
        pair("Result", claim ? [claim.status, value.notes.length ? el("details", { class: "sub" }, el("summary", {}, `${value.notes.length} odd in the outcome file`), el("ul", { class: "plain" }, value.notes.map((note) => el("li", {}, words(note))))) : null] : el("span", { class: "tone-warn" }, value.claim_problem || "no outcome yet"), [pill(task.kind, task.verdict), value.reasons.map((reason) => el("p", {}, words(reason)))], false),
        pair("Before", claim ? said(claim.before) : "", before ? [outcome(before.verdict), el("span", { class: "dim" }, before.runs.length > 1 ? ` runs: ${before.runs.join(", ")}` : "")] : nothing, early),
        pair("At its commit", claim ? said(claim.after) : "", outcome(task.after), differs),
        task.at_tip ? pair("On the branch", "", [outcome(task.at_tip), !good(task.after) && good(task.at_tip) && !task.commit ? el("span", { class: "dim" }, " by the work of others") : null]) : null,
        pair("Changes", changes, measured.files ? [`${measured.files.length} ${measured.files.length === 1 ? "file" : "files"}: `, many(measured.files, "none")] : el("span", { class: "dim" }, "none")),
        (measured.new || []).length || (measured.changed || []).length || (measured.lost || []).length
          ? pair("Tests", "", [el("div", {}, "new: ", many(measured.new, "none")), el("div", {}, "changed: ", many(measured.changed, "none")), (measured.lost || []).length ? el("div", { class: "tone-bad" }, "deleted: ", many(measured.lost)) : null]) : null,
        measured.implementation || measured.effect ? pair("Effect", "", [effect, measured.stands_alone === null || measured.stands_alone === undefined ? null : el("p", { class: "sub" }, measured.stands_alone ? "its tests pass without the fix too" : "its tests fail without the fix ✓")]) : null));
  }

  function notes(value) {
    const { claim } = value;
    const box = (title, tone, ...content) => el("section", { class: "box " + tone }, el("h3", {}, title), content);
    return [
      value.flags.length ? box("For a person to look at", "warn", el("ul", { class: "flags" }, value.flags.map((flag) => el("li", {}, el("span", { class: "tag warn" }, flag.kind), " ", words(flag.text))))) : null,
      value.questions.map((one) => box("For you to decide", "warn", el("div", { class: "commands" }, one.commands.map(([label, text]) => command(text, label))))),
      claim && claim.status === "blocked" ? box("Blocked", "warn", el("p", {}, words(claim.blocked_reason)), claim.blocked_needs ? el("p", {}, el("b", {}, "Needs: "), words(claim.blocked_needs)) : null) : null,
      ...value.aside.map((one) => box("Set aside", "warn", el("p", {}, words(one.reason)), one.branch ? el("p", { class: "sub" }, "kept on ", el("code", {}, one.branch)) : null, one.evidence.map((text) => folded(text.split("\n")[0].slice(0, 200), text)))),
      claim ? claim.escalations.map((one) => box("Escalation: " + one.kind, "busy", el("p", {}, words(one.summary)),
        one.locations.length ? el("p", { class: "sub mono" }, one.locations.map(([path, line]) => (line ? `${path}:${line}` : path)).join(", ")) : null, one.evidence ? folded("Evidence", one.evidence) : null)) : null,
      value.problems.length ? box("Could not be collected", "bad", value.problems.map((text) => el("p", {}, text))) : null,
      claim && claim.summary ? box("In the agent's words", "", prose(claim.summary)) : null,
      value.on_branch.length ? box("On the branch", "good", el("ul", { class: "plain" }, value.on_branch.map((one) => el("li", {}, el("code", { class: "sha" }, one.id.slice(0, 8)), " ", words(one.title), " ", el("span", { class: "tag" }, one.kind),
        one.rank ? el("span", { class: "sub" }, ` rank ${one.rank}: `, words(one.because)) : null, one.needed_by.length ? el("span", { class: "sub tone-warn" }, one.needed_by.length === 1 ? " · a later commit needs it" : ` · ${one.needed_by.length} later commits need it`) : null)))) : null,
    ];
  }

  function drawChanges(value) {
    const commits = value.commits.length ? el("ol", { class: "events" }, value.commits.map((one) => el("li", {}, el("code", { class: "sha" }, one.id.slice(0, 8)), el("span", {}, one.subject, el("span", { class: "dim" }, " · " + one.author))))) : null;
    const loose = value.loose.text || value.loose.note ? [el("h3", {}, "Not committed, and not used"), patch(value.loose)] : null;
    if (!value.patch.text && !value.patch.note && !loose) return el("p", { class: "empty" }, "Nothing was changed.");
    return [commits ? [el("h3", {}, `Commits of its agent (${value.commits.length})`), commits] : null, el("h3", {}, "Net change against the base"), patch(value.patch, value.task.file), loose];
  }

  const WHO = { user: "prompt", assistant: "agent", tool_call: "ran", tool_result: "result" };

  function drawEntry(entry, start, jump, linked) {
    const offset = entry.at === null ? "" : "+" + duration(Math.max(0, entry.at - start));
    const when = !offset ? null : linked ? el("button", { type: "button", class: "moment", title: "Show this moment of the recording", onclick: () => jump(entry.at) }, "▸ " + offset) : el("span", { class: "dim" }, offset);
    const code = entry.exit_code === null ? null : el("span", { class: "exit " + (entry.exit_code === 0 ? "good" : "bad") }, `exit ${entry.exit_code}`);
    const call = entry.role === "tool_call";
    const text = call ? entry.input : entry.text;
    const long = entry.role === "user" && text.length > 600;
    const body = !text ? null : long ? folded(text.split("\n")[0], text) : call || entry.role === "tool_result" ? ansi.pre(text, 60) : prose(text);
    return el("article", { class: "said role-" + (WHO[entry.role] ? entry.role : "other"), "data-time": entry.at },
      el("div", { class: "said-head" }, el("span", { class: "who" }, WHO[entry.role] || entry.role || "?", entry.tool && call ? [" ", el("b", {}, entry.tool)] : null), code, when), body);
  }

  function drawTalk(value, jump, linked) {
    const parts = value.attempts.filter((attempt) => attempt.said.entries.length || attempt.said.note).reverse();
    if (!parts.length) return el("p", { class: "empty" }, "No conversation was kept.");
    return parts.map((attempt) => [value.attempts.length > 1 ? el("h3", {}, `Attempt ${attempt.number}`) : null,
      attempt.said.entries.map((entry) => drawEntry(entry, attempt.started_at || attempt.intended_at, jump, linked)),
      attempt.said.note ? el("p", { class: "cut" }, words(attempt.said.note)) : null]);
  }

  function drawLogs(value) {
    const { before } = value;
    const made = value.logs.map((log, at) => [el("h3", {}, log.name, log.exit_code ? el("span", { class: "exit " + (log.exit_code === "0" ? "good" : "bad") }, `exit ${log.exit_code}`) : null),
      log.note ? el("p", { class: "cut" }, words(log.note)) : null, at < 2 ? ansi.pre(log.text, 200) : folded("Show the log", log.text)]);
    const failed = before && before.text ? [el("h3", {}, "How it failed at the base"), ansi.pre(before.text, 120)] : null;
    return made.length || failed ? [made, failed] : el("p", { class: "empty" }, "Nothing was verified.");
  }

  function drawAttempt(one) {
    const facts = [took(one.seconds), thousands(one.usage.tokens) && thousands(one.usage.tokens) + " tokens", money(one.usage.cost_usd), moment(one.intended_at),
      one.warned_at ? "warned" : null, one.nudged_at ? "nudged" : null].filter(Boolean);
    return el("article", { class: "ask" },
      el("div", { class: "ask-head" }, el("b", {}, `Attempt ${one.number}`), one.goes_on ? pill("running", one.state.toLowerCase() || "launching") : el("span", { class: "tag" }, one.ended), el("span", { class: "mono dim" }, one.host ? `${one.agent} on ${one.host}` : one.agent)),
      el("p", { class: "sub" }, facts.join(" · ")),
      one.because ? el("p", {}, words(one.because), one.retry ? " Tried again." : "") : null,
      one.state_reason && one.goes_on ? el("p", {}, words(one.state_reason)) : null,
      one.errors.map((text) => el("p", { class: "tone-bad" }, words(text))),
      one.screen ? folded("The last screen", one.screen) : null);
  }

  function drawAttempts(value) {
    const files = value.files.length ? [el("h3", {}, `Files it left (${value.files.length})`), value.files.map((one) =>
      el("p", { class: "file-line" }, el("span", { class: "mono" }, one.name), el("span", { class: "dim" }, " " + bytes(one.bytes))))] : null;
    return value.attempts.length ? [value.attempts.slice().reverse().map(drawAttempt), files] : el("p", { class: "empty" }, "It was not started.");
  }

  // The recordings of the verified run before those of the agent.
  function recorded(value) {
    const verified = ((value.verified && value.verified.recordings) || []).map((one) => ({ ...one, title: "verified: " + (one.title || one.name) }));
    return [...verified, ...value.recordings.map((one) => ({ ...one, title: "agent: " + one.title }))];
  }

  function drawVerified(value, jump, linked) {
    const found = value.verified;
    if (!found.events) return el("p", { class: "cut" }, found.note);
    return [el("p", { class: "sub" }, "As it was measured at its agent's commit."), transcript.failure(found.failure), transcript.draw(found.events, found.test.started_at, (event) => jump(event.time, event.recording), linked && found.recordings.length > 0)];
  }

  function signature(value) {
    return JSON.stringify([recorded(value).map((one) => [one.id, one.bytes]), value.blocks, Boolean(value.terminal)]);
  }

  window.mngrTaskPage = function ({ id, key, value, run, state, terminal, toEnd, trail }) {
    const head = el("div", { class: "head" });
    const top = el("div", {});
    const tabs = el("div", { class: "tabs", role: "tablist" });
    const flow = el("div", { class: "flow" });
    const aside = el("aside", { class: "aside" });
    const root = el("div", { class: "test task" }, aside, el("section", { class: "transcript" }, top, tabs, flow));
    let recordings = null;
    let drawn = "";
    let tab = state.tab || "";

    function jump(time, name) {
      if (recordings) recordings.seek(time, name);
    }

    function follow(time) {
      transcript.follow(flow, time);
      let last = null;
      for (const one of flow.querySelectorAll(".said")) {
        one.classList.remove("now");
        if (one.dataset.time && Number(one.dataset.time) <= time + 0.05) last = one;
      }
      if (last) last.classList.add("now");
    }

    function drawAside() {
      if (recordings) recordings.leave();
      const calls = value.attempts.flatMap((attempt) => attempt.said.entries).filter((entry) => entry.at !== null && entry.role === "tool_call");
      const moments = [...calls.map((entry) => ({ time: entry.at, text: `${entry.tool} ${entry.input.split("\n")[0].slice(0, 60)}` })), ...transcript.moments((value.verified && value.verified.events) || [])];
      const all = recorded(value);
      recordings = all.length ? window.mngrRecordings(all, moments, follow) : null;
      aside.replaceChildren(...[...transcript.blocks(value.blocks.length || !value.verified ? value.blocks : value.verified.blocks || []), recordings && el("h3", {}, all.length > 1 ? "Recordings" : "Recording"), recordings && recordings.root].filter(Boolean));
    }

    function drawTerminal() {
      const old = aside.querySelector(".now-on");
      if (old) old.remove();
      if (value.terminal) aside.prepend(el("div", { class: "now-on" }, el("h3", {}, "Its terminal now"), terminal(value.terminal)));
      toEnd(aside);
      root.classList.toggle("alone", !aside.children.length);
    }

    const linked = () => Boolean(recordings && recordings.playable());
    const TABS = { changes: ["Changes", () => drawChanges(value)], verified: ["Verified run", () => drawVerified(value, jump, linked())], talk: ["Conversation", () => drawTalk(value, jump, linked())],
      verification: ["Verification log", () => drawLogs(value)], attempts: ["Attempts", () => drawAttempts(value)] };

    function choose(name) {
      tab = name;
      keepState({ tab: name });
      drawTab();
    }

    function drawTab() {
      const there = Object.entries(TABS).filter(([name]) => name !== "verified" || value.verified);
      const now = there.some(([name]) => name === tab) ? tab : value.patch.text || value.patch.note ? "changes" : value.attempts.length ? "talk" : "attempts";
      const counts = { attempts: value.attempts.length };
      tabs.replaceChildren(...there.map(([name, [text]]) => el("button", { type: "button", role: "tab", "aria-selected": String(name === now), onclick: () => choose(name) }, text, counts[name] > 1 ? ` (${counts[name]})` : "")));
      flow.replaceChildren();
      window.mngr.append(flow, [TABS[now][1]()]);
    }

    function draw() {
      const sign = signature(value);
      if (sign !== drawn) drawAside();
      drawn = sign;
      drawTerminal();
      head.replaceChildren(...drawHead(value, run, key));
      top.replaceChildren();
      const measured = window.mngrMeasured(value);
      window.mngr.append(top, [versus(value), measured.length ? el("div", { class: "measured-row" }, measured) : null, notes(value)]);
      drawTab();
    }

    function onkey(event) {
      const at = run.tasks.findIndex((other) => other.key === key);
      const other = event.key === "n" ? run.tasks[at + 1] : event.key === "p" ? run.tasks[at - 1] : null;
      if (other && at >= 0) location.hash = "#task/" + other.key;
    }

    draw();
    return {
      id, content: [head, root], onkey,
      trail: [...trail, { text: value.task.name, href: "#" + id }],
      refresh(now) {
        value = now;
        redrawn(root, draw);
      },
      ready: () => toEnd(aside),
      leave() {
        if (recordings) recordings.leave();
      },
    };
  };
})();
