// What was measured of one task: the four combinations of old and new tests and product, the strength of its test, the
// expected values that it changed.
"use strict";

(function () {
  const { el } = window.mngr;
  const { outcome, words } = window.mngrTmr;
  const FOUR = [["t0p0", "the old tests on the old product"], ["t0p1", "the old tests on the new product"], ["t1p0", "the new tests on the old product"], ["t1p1", "the new tests on the new product"]];
  const MEANS = {
    fixed: "A test that nobody touched proves the fix.", "fixed together": "Product and test changed, and both are needed.",
    "expectation changed": "Only the test changed its mind: the old product passes it too.", "new behaviour": "No test failed before: a new or changed test asks for what the new product does.",
    unproven: "Nothing shows that the product had to change.", stronger: "The test notices more than before.", same: "The test notices what it did before.",
    weaker: "The test notices less than before.", "cannot fail": "The test passes whatever the product does.",
  };

  function four(value) {
    const { marks } = value;
    if (!Object.values(marks).some(Boolean)) return null;
    const cell = ([name, told]) => el("td", { title: `${told}: ${marks[name] || "not measured"}` }, outcome(marks[name]));
    const changed = value.task.kind === "expectation-changed";
    const means = MEANS[value.task.verdict] || (value.strength && MEANS[value.strength.word]);
    return el("section", { class: "measured" }, el("h3", {}, "Its test, measured four times"),
      el("table", { class: "four" }, el("thead", {}, el("tr", {}, el("td", {}), el("th", { scope: "col" }, "on the old product"), el("th", { scope: "col" }, "on the new product"))),
        el("tbody", {}, el("tr", {}, el("th", { scope: "row" }, "the old tests"), FOUR.slice(0, 2).map(cell)),
          el("tr", { class: changed ? "differs" : null }, el("th", { scope: "row" }, "the new tests"), FOUR.slice(2).map(cell)))),
      means ? el("p", { class: "sub" }, means) : null);
  }

  // Both bars have one scale: a test that runs more has more that it could notice.
  function bar(label, [killed, of], most, without = "not measured") {
    const full = el("i", {});
    full.style.width = (of ? (killed / most) * 100 : 0) + "%";
    return el("div", { class: "strength-row" }, el("span", { class: "sub" }, label), el("span", { class: "strength-bar" }, full), el("span", { class: "number" }, of ? `${killed} of ${of}` : without));
  }

  function strength(value) {
    const found = value.strength;
    if (!found) return null;
    const tone = { stronger: "good", weaker: "bad", "cannot fail": "bad", mixed: "warn" }[found.word] || "calm";
    const most = Math.max(found.before[1], found.after[1]);
    const only = (title, list, mark) => (list.length ? el("details", { class: "folded", open: list.length < 6 || null }, el("summary", {}, `${title} (${list.length})`),
      el("ul", { class: "plain edits " + mark }, list.map((text) => el("li", {}, words(text))))) : null);
    return el("section", { class: "measured" }, el("h3", {}, "Strength of its tests: changes that they notice"),
      el("div", { class: "strength tone-" + tone }, bar("before", found.before, most, found.word === "stronger" ? "no test" : undefined), bar("after", found.after, most)),
      found.word === "not measured" && found.after[1] ? el("p", { class: "sub" }, "nothing to compare with: its test did not pass before") :
      el("p", { class: "sub" }, el("b", { class: "tone-" + tone }, found.word), found.how ? `, by ${found.how}` : "", found.word === "same" ? `: no difference seen with ${found.after[1]}` : ""),
      only("Noticed only now", found.gained, "gained"), only("Noticed only before", found.lost, "lost"));
  }

  function expectations(value) {
    if (!value.expectations.length) return null;
    return el("section", { class: "measured" }, el("h3", {}, "Expected values that it changed"), value.expectations.map((one) => el("div", { class: "excerpt" },
      el("div", { class: "excerpt-head" }, el("span", { class: "mono" }, one.line ? `${one.path}:${one.line}` : one.path)),
      el("pre", { class: "patch" }, el("span", { class: "removed" }, "-" + one.before), "\n", el("span", { class: "added" }, "+" + one.after)))));
  }

  window.mngrMeasured = (value) => [four(value), expectations(value), strength(value)].filter(Boolean);
})();
