// Agents at work over time, as a picture: the area is how many there were, the line how many there could be, and below
// are the phases of the run.
"use strict";

(function () {
  const { el, duration } = window.mngr;
  const WIDTH = 1000;
  const HEIGHT = 120;
  const NAMES = { collect: "collect", canary: "sanity check", baseline: "baseline", select: "select", map: "agents and verification", integrate: "integrate" };

  function svg(tag, attributes, ...children) {
    const made = document.createElementNS("http://www.w3.org/2000/svg", tag);
    for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
    made.append(...children);
    return made;
  }

  // Steps as a path: each value holds until the next.
  function path(steps, x, y, end) {
    let text = "";
    let level = 0;
    for (const [at, value] of steps) {
      text += `${text ? "L" : "M"}${x(at)} ${y(level)}L${x(at)} ${y(value)}`;
      level = value;
    }
    return text + `L${x(end)} ${y(level)}`;
  }

  window.mngrChart = function (chart) {
    const most = Math.max(1, chart.most);
    const length = Math.max(chart.seconds, 0.001);
    const x = (at) => ((Math.min(at, length) / length) * WIDTH).toFixed(1);
    const y = (value) => (HEIGHT - (Math.min(value, most * 1.25) / (most * 1.25)) * HEIGHT).toFixed(1);
    const picture = svg("svg", { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, preserveAspectRatio: "none", class: "agents", role: "img",
      "aria-label": `Agents over time: at most ${chart.most} at once in ${duration(length)}` });
    for (const share of [0.25, 0.5, 0.75]) picture.append(svg("line", { class: "grid", x1: 0, x2: WIDTH, y1: HEIGHT * share, y2: HEIGHT * share }));
    const limits = chart.limits.filter(([, limit]) => limit <= most * 1.25);
    if (chart.agents.length) {
      picture.append(svg("path", { class: "area", d: path(chart.agents, x, y, length) + `L${x(length)} ${HEIGHT}L${x(chart.agents[0][0])} ${HEIGHT}Z` }));
      picture.append(svg("path", { class: "edge", d: path(chart.agents, x, y, length) }));
    }
    if (limits.length) picture.append(svg("path", { class: "limit", d: path(limits, x, y, length) }));
    const band = el("div", { class: "band" });
    chart.phases.forEach((phase) => {
      const share = (phase.to - phase.from) / length;
      if (share < 0.001 && phase.over) return;
      const name = NAMES[phase.name] || phase.name;
      const told = `${name}: ${duration(phase.to - phase.from)}${phase.over ? "" : ", not over"}`;
      const part = el("span", { class: "phase" + (phase.over ? "" : " open") + (phase.name === "map" ? " map" : ""), title: told }, share > 0.05 ? name : "");
      part.style.left = (phase.from / length) * 100 + "%";
      part.style.width = Math.max(share * 100, 0.15) + "%";
      band.append(part);
    });
    return el("figure", { class: "chart" },
      el("figcaption", {}, el("span", {}, "Agents at work", el("b", {}, ` up to ${chart.most}`)), el("span", { class: "dim" }, duration(length))),
      picture, band);
  };
})();
