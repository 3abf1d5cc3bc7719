// Terminal output as DOM: colours and styles become spans, carriage returns and backspaces overwrite as a terminal
// would, every other control sequence is left out, and control characters that are left become visible.
"use strict";

(function () {
  // CSI, then OSC/DCS/APC/PM/SOS strings that end on their line (one that does not must not hide the rest), then others.
  const SEQUENCE = /\u001b\[([0-9:;<=>?]*)[ -/]*([@-~])|\u001b[\]P^_X][^\u0007\u001b\n]{0,4096}(?:\u0007|\u001b\\)|\u001b[ -/]*[0-~]|\u009b([0-9:;<=>?]*)[ -/]*([@-~])|\u001b/y;
  const { plain } = window.mngr;
  const MOST_COLUMNS = 500;
  const MOST_CHARACTERS = 4000;
  const PLAIN = Object.freeze({});

  class Screen {
    constructor() {
      this.lines = [[]];
      this.column = 0;
      this.style = PLAIN;
    }

    write(text) {
      let at = 0;
      while (at < text.length) {
        const code = text.charCodeAt(at);
        if (code === 0x1b || code === 0x9b) {
          SEQUENCE.lastIndex = at;
          const found = SEQUENCE.exec(text);
          if (found) {
            this.obey(found[1] ?? found[3], found[2] ?? found[4]);
            at = SEQUENCE.lastIndex;
            continue;
          }
        }
        const character = String.fromCodePoint(text.codePointAt(at));
        this.put(character, code);
        at += character.length;
      }
    }

    put(character, code) {
      if (code === 0x0a) {
        this.lines.push([]);
        this.column = 0;
      } else if (code === 0x0d) this.column = 0;
      else if (code === 0x08) this.column = Math.max(0, this.column - 1);
      else if (code === 0x07) return;
      else this.cell(code === 0x09 ? character : plain(character));
    }

    cell(text) {
      const line = this.lines[this.lines.length - 1];
      while (line.length < this.column) line.push([" ", PLAIN]);
      line[this.column] = [text, this.style];
      this.column += 1;
    }

    obey(numbers, end) {
      const line = this.lines[this.lines.length - 1];
      if (end === "m") this.style = styled(this.style, numbers);
      else if (end === "K" && (numbers || "0") === "0") line.length = Math.min(line.length, this.column);
      else if (end === "K") line.length = 0;
      else if (end === "C") this.column = Math.max(this.column, Math.min(this.column + (parseInt(numbers, 10) || 1), MOST_COLUMNS));
      else if (end === "D") this.column = Math.max(0, this.column - (parseInt(numbers, 10) || 1));
      else if (end === "G") this.column = Math.min(Math.max(0, (parseInt(numbers, 10) || 1) - 1), MOST_COLUMNS);
    }
  }

  const FLAGS = { 1: "bold", 2: "dim", 3: "italic", 4: "underline", 7: "reverse", 8: "hidden", 9: "strike" };
  const OFF = { 22: ["bold", "dim"], 23: ["italic"], 24: ["underline"], 27: ["reverse"], 28: ["hidden"], 29: ["strike"] };

  function styled(before, text) {
    if (/[<=>?]/.test(text)) return before;
    const codes = text.split(";");
    let style = { ...before };
    for (let at = 0; at < codes.length; at++) {
      const [code, ...parts] = codes[at].split(":").map((part) => parseInt(part, 10) || 0);
      if (code === 38 || code === 48) {
        // The parts of a colour follow behind colons, or as codes of their own behind semicolons.
        const [colour, used] = parts.length ? [partsColour(parts), 0] : codesColour(codes.slice(at + 1, at + 5));
        if (colour !== null) style[code === 38 ? "fg" : "bg"] = colour;
        at += used;
      } else if (code === 0) style = {};
      else if (FLAGS[code]) style[FLAGS[code]] = true;
      else if (OFF[code]) for (const name of OFF[code]) delete style[name];
      else if (code >= 30 && code <= 37) style.fg = code - 30;
      else if (code >= 90 && code <= 97) style.fg = code - 82;
      else if (code >= 40 && code <= 47) style.bg = code - 40;
      else if (code >= 100 && code <= 107) style.bg = code - 92;
      else if (code === 39) delete style.fg;
      else if (code === 49) delete style.bg;
    }
    return Object.freeze(style);
  }

  function partsColour(parts) {
    if (parts[0] === 5) return indexed(parts[1]);
    return parts[0] === 2 ? rgb(parts.slice(-3)) : null;
  }

  function codesColour(codes) {
    const [kind, ...parts] = codes.map((part) => parseInt(part, 10) || 0);
    if (kind === 5) return [indexed(parts[0]), 2];
    return kind === 2 ? [rgb(parts.slice(0, 3)), 4] : [null, 1];
  }

  function rgb(parts) {
    return `rgb(${[0, 1, 2].map((at) => Math.min(255, parts[at] || 0)).join(", ")})`;
  }

  function indexed(number) {
    if (!(number >= 0 && number <= 255)) return null;
    if (number < 16) return number;
    if (number >= 232) {
      const grey = 8 + (number - 232) * 10;
      return `rgb(${grey}, ${grey}, ${grey})`;
    }
    const step = (part) => (part === 0 ? 0 : 55 + part * 40);
    const rest = number - 16;
    return `rgb(${step(Math.floor(rest / 36))}, ${step(Math.floor(rest / 6) % 6)}, ${step(rest % 6)})`;
  }

  function span(text, style) {
    if (style === PLAIN || Object.keys(style).length === 0) return document.createTextNode(text);
    const made = document.createElement("span");
    for (const name of Object.values(FLAGS)) if (style[name]) made.classList.add("t-" + name);
    const [fg, bg] = style.reverse ? [style.bg, style.fg] : [style.fg, style.bg];
    if (typeof fg === "number") made.classList.add("t-f" + fg);
    if (typeof bg === "number") made.classList.add("t-b" + bg);
    if (typeof fg === "string") made.style.color = fg;
    if (typeof bg === "string") made.style.backgroundColor = bg;
    if (style.reverse && fg === undefined) made.classList.add("t-fr");
    if (style.reverse && bg === undefined) made.classList.add("t-br");
    made.textContent = text;
    return made;
  }

  function nodesOf(line) {
    const nodes = [];
    let text = "";
    let style = PLAIN;
    for (const [character, own] of line) {
      if (own !== style && text) {
        nodes.push(span(text, style));
        text = "";
      }
      style = own;
      text += character;
    }
    if (text) nodes.push(span(text, style));
    return nodes;
  }

  function cellsOf(text) {
    const screen = new Screen();
    screen.write(text);
    const found = screen.lines;
    if (found.length > 1 && found[found.length - 1].length === 0) found.pop();
    return found;
  }

  // The lines of a text, each an array of nodes.
  function lines(text) {
    return cellsOf(text).map(nodesOf);
  }

  function clipped(line) {
    return line.length > MOST_CHARACTERS ? [...nodesOf(line.slice(0, MOST_CHARACTERS)), "…"] : nodesOf(line);
  }

  // A <pre> of it. What is beyond `most` lines, or on lines without end, waits behind a button.
  function pre(text, most = 400) {
    const made = document.createElement("pre");
    made.className = "term";
    const all = cellsOf(text);
    const fill = (some, nodes) => some.forEach((line) => made.append(...nodes(line), "\n"));
    const many = all.length > most;
    fill(many ? all.slice(0, most - 50) : all, clipped);
    if (!many && all.every((line) => line.length <= MOST_CHARACTERS)) return made;
    const middle = document.createElement("button");
    middle.type = "button";
    middle.className = "fold";
    middle.textContent = many ? `show ${all.length - most} more lines` : "show all of the long lines";
    middle.addEventListener("click", () => {
      made.replaceChildren();
      fill(all, nodesOf);
    });
    made.append(middle, "\n");
    if (many) fill(all.slice(all.length - 50), clipped);
    return made;
  }

  window.mngrAnsi = { lines, pre };
})();
