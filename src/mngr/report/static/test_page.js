// One test: its blocks and recordings beside the transcript, whose commands jump to their moment.
"use strict";

(function () {
  const { el, duration, moment } = window.mngr;
  const transcript = window.mngrTranscript;

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
      transcript.mark(flow, wanted);
    }

    function follow(time) {
      transcript.follow(flow, time);
    }

    function drawRecordings() {
      if (recordings) recordings.leave();
      recordings = value.recordings.length ? window.mngrRecordings(value.recordings, transcript.moments(value.events), follow) : null;
      const blocks = transcript.blocks(value.blocks);
      aside.replaceChildren(...[...blocks, recordings && el("h3", {}, value.recordings.length > 1 ? "Recordings" : "Recording"), recordings && recordings.root].filter(Boolean));
      root.classList.toggle("alone", !aside.children.length);
    }

    function draw() {
      start = value.test.started_at;
      const now = signature(value) + value.blocks.length;
      if (now !== drawn) drawRecordings();
      drawn = now;
      head.replaceChildren(...drawHead(value, runKey, neighbours, pill));
      failure.replaceChildren(...[transcript.failure(value.failure)].filter(Boolean));
      const linked = Boolean(recordings && recordings.playable());
      flow.replaceChildren(...transcript.draw(value.events, start, jump, linked));
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
