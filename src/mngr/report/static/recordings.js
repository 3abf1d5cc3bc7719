// The pane with terminal recordings: tabs, the player, and moments to jump to. The player is loaded when it is first
// needed, and a report without one says how to get it.
"use strict";

(function () {
  const { el, load, script, styles, site, duration } = window.mngr;
  const TICK_MILLISECONDS = 200;
  const SMALLEST_PIXELS = 10; // of the font
  const CELL_PER_PIXEL = 0.602; // how wide a cell is for each pixel of the font
  const FONTS = "ui-monospace, 'SF Mono', Menlo, Consolas, 'DejaVu Sans Mono', 'Liberation Mono', monospace";
  let playerFiles = null;

  function loadPlayer() {
    playerFiles = playerFiles || Promise.all([script("assets/asciinema-player.min.js"), styles("assets/asciinema-player.css")]);
    return playerFiles;
  }

  // recordings: [{id, name, title, kind, number, started_at, ended_at, seconds, columns, rows, exit_code, bytes, note,
  // problem}]; moments: [{time, text}] in epoch seconds; onTime(epoch seconds) is called while it plays.
  window.mngrRecordings = function (recordings, moments, onTime) {
    const tabs = el("div", { class: "tabs", role: "tablist", "aria-label": "Recordings" });
    const stage = el("div", { class: "stage" });
    const facts = el("p", { class: "facts" });
    const root = el("section", { class: "recordings", "aria-label": "Recordings" }, tabs, stage, facts);
    let current = null;
    let player = null;
    let opening = null;
    let asked = 0;
    let last = -1;
    let begun = false;

    function drawTabs() {
      tabs.replaceChildren(...recordings.map((one) => el("button", {
        type: "button", role: "tab", "aria-selected": String(one === current), onclick: () => select(one),
      }, one.title || one.name)));
      tabs.hidden = recordings.length < 2;
    }

    function drawFacts() {
      const length = current.seconds === null ? null : duration(current.seconds);
      const parts = [current.name, `${current.columns}×${current.rows}`, length,
        current.exit_code === null ? null : `exit code ${current.exit_code}`].filter(Boolean);
      facts.replaceChildren(parts.join(" · "), current.note ? el("strong", { class: "note" }, current.note) : "");
    }

    function select(one) {
      if (one !== current) {
        current = one;
        stop();
        drawTabs();
        drawFacts();
        opening = open(one, ++asked);
      }
      return opening;
    }

    async function open(one, mine) {
      const say = (text) => stage.replaceChildren(el("p", { class: "empty" }, text));
      if (!site().player) return say(`Recordings need the player: ${site().playerHint}`);
      if (one.problem) return say(`This recording cannot be played: ${one.problem}`);
      stage.replaceChildren(el("p", { class: "empty" }, "Loading the recording…"));
      try {
        const [text] = await Promise.all([load(one.id, site().live ? String(one.bytes) : undefined), loadPlayer()]);
        if (mine !== asked) return null;
        const box = el("div", { class: "screen" });
        stage.replaceChildren(box);
        player = create(one, text, box);
        player.addEventListener("play", () => (begun = true));
      } catch (error) {
        if (mine === asked) say(`This recording cannot be played: ${error.message}`);
      }
      return player;
    }

    function create(one, text, box) {
      const marks = moments.map((moment) => [moment.time - one.started_at, moment.text])
        .filter(([at]) => at >= 0 && at <= one.seconds);
      // Wider than the page allows at a size that can be read: the recording is scrolled sideways instead.
      const fits = stage.clientWidth / (one.columns * CELL_PER_PIXEL + 2) >= SMALLEST_PIXELS;
      return window.AsciinemaPlayer.create({ data: text }, box, {
        preload: true, fit: fits ? "width" : false, terminalFontSize: fits ? undefined : SMALLEST_PIXELS + 1 + "px", controls: true, markers: marks, cols: one.columns, rows: one.rows,
        poster: "npt:" + one.poster, terminalFontFamily: FONTS, theme: "asciinema",
      });
    }

    function stop() {
      if (player) player.dispose();
      player = null;
      begun = false;
      last = -1;
    }

    // The recording that shows a moment: the wanted one, the one on show, the first that was running, else the nearest.
    function at(time, name) {
      const distance = (one) => Math.max(one.started_at - time, time - (one.started_at + (one.seconds || 0)), 0);
      const playable = recordings.filter((one) => !one.problem);
      return playable.find((one) => one.name === name)
        || (current && playable.includes(current) && distance(current) === 0 && current)
        || playable.slice().sort((a, b) => distance(a) - distance(b))[0] || null;
    }

    async function seek(time, name) {
      const one = at(time, name);
      if (!one) return;
      const ready = await select(one);
      if (!ready) return;
      const second = Math.min(Math.max(time - one.started_at, 0), one.seconds || 0);
      if (!begun) {
        // A player that still shows its poster draws nothing when it seeks.
        await ready.play();
        await ready.pause();
      }
      await ready.seek(second);
      tell(true);
      const box = root.getBoundingClientRect();
      if (box.top < 0 || box.top > window.innerHeight * 0.7) root.scrollIntoView({ block: "start" });
    }

    async function tell(always) {
      const one = current;
      if (!player || !one) return;
      const second = await player.getCurrentTime();
      if (one !== current || typeof second !== "number") return;
      root.dataset.second = second.toFixed(3);
      if (always || (last >= 0 && Math.abs(second - last) > 0.001)) onTime(one.started_at + second, one);
      last = second;
    }

    const timer = setInterval(tell, TICK_MILLISECONDS);
    if (recordings.length) select(recordings[0]);
    return {
      root,
      seek,
      playable: () => Boolean(site().player) && recordings.some((one) => !one.problem),
      leave() {
        clearInterval(timer);
        asked++;
        stop();
      },
    };
  };
})();
