// The frame of every page: data files that register themselves, routes in the hash, the bar on top, live updates.
// Text from outside only ever becomes a text node or an attribute that cannot run: nothing here parses HTML.
"use strict";

(function () {
  const KEY = /^[A-Za-z0-9_][A-Za-z0-9._-]*$/;
  const POLL_MILLISECONDS = 1000;
  const values = new Map();
  const versions = new Map();
  const pages = new Map();
  let shown = null; // {id, version, refresh, leave}
  let serial = 0;

  // A data file is `mngrData("id", "...json...")`: JSON in a string parses faster than a literal and cannot run.
  window.mngrData = function (id, json) {
    values.set(id, JSON.parse(json));
  };

  function el(tag, attributes, ...children) {
    const made = document.createElement(tag);
    for (const [name, value] of Object.entries(attributes || {})) {
      if (value === null || value === undefined || value === false) continue;
      if (name.startsWith("on")) made.addEventListener(name.slice(2), value);
      else if (name === "href" && !String(value).startsWith("#")) throw new Error("only links within the pages");
      else made.setAttribute(name, value === true ? "" : value);
    }
    append(made, children);
    return made;
  }

  function append(parent, children) {
    for (const child of children.flat(Infinity)) {
      if (child === null || child === undefined || child === false) continue;
      parent.append(child instanceof Node ? child : document.createTextNode(plain(String(child))));
    }
    return parent;
  }

  // Control characters, and those that turn the direction of text around, are shown as what they are.
  function plain(text) {
    return text.replace(/[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u2028-\u202e\u2066-\u2069]/g, (found) => {
      const code = found.charCodeAt(0);
      const hex = code.toString(16);
      return code < 0x100 ? "\\x" + hex.padStart(2, "0") : "\\u" + hex.padStart(4, "0");
    });
  }

  function insert(make) {
    return new Promise((resolve, reject) => {
      const node = make();
      node.addEventListener("load", () => resolve(node));
      node.addEventListener("error", () => reject(new Error("cannot load " + (node.src || node.href))));
      document.head.append(node);
    });
  }

  function script(url) {
    return insert(() => Object.assign(document.createElement("script"), { src: url }));
  }

  function styles(url) {
    return insert(() => Object.assign(document.createElement("link"), { rel: "stylesheet", href: url }));
  }

  // The value of a data file, from memory when it was loaded before and no newer version is asked for.
  async function load(id, version) {
    if (!id.split("/").every((part) => KEY.test(part))) throw new Error("not a page of this report: " + id);
    if (values.has(id) && (version === undefined || versions.get(id) === version)) return values.get(id);
    values.delete(id);
    versions.set(id, version);
    const node = await script("data/" + id + ".js" + (version === undefined ? "" : "?v=" + encodeURIComponent(version)));
    node.remove();
    if (!values.has(id)) throw new Error("data/" + id + ".js holds nothing");
    return values.get(id);
  }

  function page(kind, show) {
    pages.set(kind, show);
  }

  // `#test/run/key?q=x` is the page "test" with the parts ["run", "key"] and the state {q: "x"}.
  function route() {
    const [path, query] = split(location.hash.slice(1) || site().home, "?");
    const [kind, ...parts] = path.split("/");
    return { kind, parts, state: Object.fromEntries(new URLSearchParams(query)) };
  }

  function split(text, mark) {
    const at = text.indexOf(mark);
    return at < 0 ? [text, ""] : [text.slice(0, at), text.slice(at + 1)];
  }

  // Keeps what was searched and sorted in the address, so that "back" and a copied link find it again.
  function keepState(state) {
    const filled = Object.entries(state).filter(([, value]) => value !== "" && value !== undefined);
    const query = new URLSearchParams(filled).toString();
    const path = split(location.hash.slice(1) || site().home, "?")[0];
    history.replaceState(null, "", "#" + path + (query ? "?" + query : ""));
  }

  function site() {
    return values.get("site");
  }

  async function show() {
    const mine = ++serial;
    const { kind, parts, state } = route();
    if (shown && shown.leave) shown.leave();
    shown = null;
    const main = document.getElementById("main");
    try {
      const make = pages.get(kind);
      if (!make) throw new Error("there is no page “" + kind + "”");
      const made = await make(parts, state);
      if (mine !== serial) {
        if (made.leave) made.leave();
        return;
      }
      main.replaceChildren(...made.content);
      bar(made.trail);
      document.title = made.trail.map((step) => step.text).reverse().join(" · ");
      shown = { ...made, version: undefined };
      window.scrollTo(0, 0);
      if (made.ready) made.ready();
    } catch (error) {
      if (mine !== serial) return;
      const home = { text: site().title, href: "#" + site().home };
      bar([home]);
      main.replaceChildren(
        el("div", { class: "empty" }, el("h1", {}, "Nothing to show"), el("p", {}, error.message),
          el("p", {}, el("a", { href: home.href }, "To the start"))));
    }
    performance.mark("mngr-shown");
  }

  function bar(trail) {
    const steps = trail.map((step, at) =>
      at === trail.length - 1
        ? el("span", { class: "here", "aria-current": "page", title: step.text }, step.text)
        : [el("a", { href: step.href, title: step.text }, step.text), el("span", { class: "slash", "aria-hidden": "true" }, "/")]);
    const live = site().live ? el("span", { class: "live", id: "live", role: "status" }, "live") : null;
    document.getElementById("bar").replaceChildren(el("nav", { class: "trail", "aria-label": "Where" }, steps), live || "");
  }

  function foot() {
    const player = site().player;
    append(document.getElementById("foot"), [
      el("span", {}, "mngr " + site().version),
      el("span", {}, player ? "player from " + player : "no player: " + site().playerHint),
      site().live ? null : el("span", {}, "made " + moment(site().made_at)),
      el("span", { class: "shortcuts" }, keyHint("/", "search"), keyHint("j k", "move"), keyHint("Enter", "open"), keyHint("n p", "next, previous test"), keyHint("u", "up")),
    ]);
  }

  function keyHint(key, meaning) {
    return el("span", {}, el("kbd", {}, key), " " + meaning);
  }

  async function poll() {
    if (!document.hidden && shown && shown.id) await look(shown);
    setTimeout(poll, POLL_MILLISECONDS);
  }

  async function look(current) {
    const sign = document.getElementById("live");
    try {
      const answer = await fetch("version/" + current.id, { cache: "no-store" });
      if (!answer.ok) throw new Error(answer.statusText);
      const version = await answer.text();
      if (sign) sign.className = "live";
      if (sign) sign.textContent = "live";
      if (current !== shown || version === current.version) return;
      const value = await load(current.id, version);
      if (current !== shown) return;
      current.version = version;
      current.refresh(value);
    } catch {
      if (sign) sign.className = "live lost";
      if (sign) sign.textContent = "not connected";
    }
  }

  function typing(event) {
    const at = event.target;
    return event.ctrlKey || event.metaKey || event.altKey || /^(INPUT|TEXTAREA|SELECT)$/.test(at.tagName || "");
  }

  function onKey(event) {
    if (typing(event)) return;
    if (event.key === "/") {
      const search = document.querySelector("input[type=search]");
      if (search) {
        search.focus();
        search.select();
        event.preventDefault();
      }
    } else if (event.key === "u" && shown && shown.trail.length > 1) {
      location.hash = shown.trail[shown.trail.length - 2].href;
    } else if (shown && shown.onkey) {
      shown.onkey(event);
    }
  }

  function moment(seconds) {
    if (!seconds) return "";
    const at = new Date(seconds * 1000);
    const two = (number) => String(number).padStart(2, "0");
    return `${at.getFullYear()}-${two(at.getMonth() + 1)}-${two(at.getDate())} ${two(at.getHours())}:${two(at.getMinutes())}`;
  }

  function duration(seconds) {
    if (seconds === null || seconds === undefined) return "";
    if (seconds < 0.0995) return Math.round(seconds * 1000) + " ms";
    if (seconds < 9.995) return seconds.toFixed(2) + " s";
    if (seconds < 99.95) return seconds.toFixed(1) + " s";
    const whole = Math.round(seconds);
    if (whole < 3600) return `${Math.floor(whole / 60)} min ${String(whole % 60).padStart(2, "0")} s`;
    return `${Math.floor(whole / 3600)} h ${String(Math.floor((whole % 3600) / 60)).padStart(2, "0")} min`;
  }

  function start() {
    foot();
    window.addEventListener("hashchange", show);
    document.addEventListener("keydown", onKey);
    document.getElementById("skip").addEventListener("click", (event) => {
      event.preventDefault();
      document.getElementById("main").focus();
    });
    show();
    if (site().live) setTimeout(poll, POLL_MILLISECONDS);
  }

  window.mngr = { el, append, plain, load, script, styles, page, keepState, site, moment, duration, start };
})();
