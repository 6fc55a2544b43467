/*
 * What a program prints, as a terminal shows it: colours, and lines that are written over (\r, \b and
 * "erase to the end of the line", which progress bars use). Every other sequence is left out.
 *
 * Lines that are over are appended and never touched again; the last one is kept as cells and drawn
 * anew with each piece.
 */
import { el } from "./common.js";

interface Style {
  front: string; // "", "ansi-1", or "rgb(…)"
  back: string;
  marks: string; // classes: bold, underline, …
}

interface Cell {
  text: string;
  kind: string;
  style: Style;
}

const PLAIN: Style = { front: "", back: "", marks: "" };
const MARKS: Record<number, string> = { 1: "bold", 2: "dim", 3: "italic", 4: "underline" };
/* A sequence may be cut in two by the pieces; one that is longer than that is none. */
const LONGEST = 256;
// eslint-disable-next-line no-control-regex
const SEQUENCE = /^(?:\x1b\[([0-?]*)[ -/]*([@-~])|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)|\x1b[ -/]*[0-Z\\^-~])/;
// eslint-disable-next-line no-control-regex
const SPECIAL = /[\x00-\x08\x0b-\x1f\x7f]/;

/* One of the 256 colours of terminals. */
function indexed(n: number): string {
  if (n < 16) return `ansi-${n}`;
  if (n >= 232) return `rgb(${`${8 + 10 * (n - 232)} `.repeat(3).trim().replace(/ /g, ",")})`;
  const level = (v: number): number => (v === 0 ? 0 : 55 + 40 * v);
  const at = n - 16;
  return `rgb(${level(Math.floor(at / 36))},${level(Math.floor(at / 6) % 6)},${level(at % 6)})`;
}

/* 38;5;N and 38;2;R;G;B: the colour, and how many numbers it took. */
function extended(codes: number[], at: number): [string, number] {
  const byte = (k: number): number => Math.min(codes[at + k] ?? 0, 255);
  if (codes[at + 1] === 5) return [indexed(byte(2)), 2];
  if (codes[at + 1] === 2) return [`rgb(${byte(2)},${byte(3)},${byte(4)})`, 4];
  return ["", 1];
}

function restyle(before: Style, codes: number[]): Style {
  let style = { ...before };
  for (let i = 0; i < codes.length; i++) {
    const code = codes[i] ?? 0;
    const mark = MARKS[code];
    if (code === 0) style = { ...PLAIN };
    else if (mark) style.marks = `${style.marks.replace(mark, "").trim()} ${mark}`.trim();
    else if (code === 22) style.marks = style.marks.replace(/bold|dim/g, "").trim();
    else if (code === 23 || code === 24)
      style.marks = style.marks.replace(MARKS[code - 20] ?? "", "").trim();
    else if (code >= 30 && code <= 37) style.front = `ansi-${code - 30}`;
    else if (code >= 90 && code <= 97) style.front = `ansi-${code - 82}`;
    else if (code >= 40 && code <= 47) style.back = `ansi-${code - 40}`;
    else if (code >= 100 && code <= 107) style.back = `ansi-${code - 92}`;
    else if (code === 39) style.front = "";
    else if (code === 49) style.back = "";
    else if (code === 38 || code === 48) {
      const [colour, taken] = extended(codes, i);
      if (code === 38) style.front = colour;
      else style.back = colour;
      i += taken;
    }
  }
  return style;
}

function draw(run: Cell, what: string): HTMLSpanElement {
  const { front, back, marks } = run.style;
  const classes = [run.kind, ...marks.split(" ")];
  if (front.startsWith("ansi")) classes.push(front);
  if (back.startsWith("ansi")) classes.push(back.replace("ansi", "ansi-back"));
  const span = el("span", { class: classes.filter((c) => c).join(" ") }, what);
  if (front.startsWith("rgb")) span.style.color = front;
  if (back.startsWith("rgb")) span.style.backgroundColor = back;
  return span;
}

export class Screen {
  private line: Cell[] = [];
  private column = 0;
  private readonly styles = new Map<string, Style>();
  private readonly rests = new Map<string, string>();
  private readonly last = el("span");

  constructor(private readonly to: HTMLElement) {}

  clear(): void {
    this.line = [];
    this.column = 0;
    this.styles.clear();
    this.rests.clear();
    this.last.replaceChildren();
    this.to.replaceChildren(this.last);
  }

  write(kind: string, data: string): void {
    const text = (this.rests.get(kind) ?? "") + data;
    this.rests.delete(kind);
    let at = 0;
    while (at < text.length) {
      const next = text.slice(at).search(SPECIAL);
      const end = next < 0 ? text.length : at + next;
      if (end > at) this.put(kind, text.slice(at, end));
      if (end === text.length) break;
      const taken = this.obey(kind, text.slice(end, end + LONGEST));
      if (taken === 0) {
        this.rests.set(kind, text.slice(end));
        break;
      }
      at = end + taken;
    }
    this.drawLast();
  }

  /* Nothing in it is special but newlines and tabs. */
  private put(kind: string, text: string): void {
    const style = this.styles.get(kind) ?? PLAIN;
    const whole = text.lastIndexOf("\n") + 1;
    if (whole > 0) {
      const first = text.indexOf("\n");
      for (const char of text.slice(0, first)) this.cell({ text: char, kind, style });
      this.finish(kind, style, text.slice(first, whole));
    }
    for (const char of text.slice(whole)) this.cell({ text: char, kind, style });
  }

  private cell(cell: Cell): void {
    this.line[this.column++] = cell;
  }

  /* The line is over, and so are those in `more`, which begins with its newline. */
  private finish(kind: string, style: Style, more: string): void {
    const runs = this.runs();
    const end = runs[runs.length - 1];
    end?.append("\n"); // in an element of its own it would have a bar of its own, too
    const rest = end ? more.slice(1) : more;
    const span = draw({ text: "", kind, style }, rest);
    const before = this.last.previousSibling;
    if (runs.length === 0 && before instanceof HTMLElement && before.className === span.className &&
        !before.style.cssText && !span.style.cssText && before.firstChild instanceof Text)
      before.firstChild.appendData(rest);
    else this.last.before(...runs, ...(rest ? [span] : []));
    this.line = [];
    this.column = 0;
  }

  private runs(): HTMLSpanElement[] {
    const made: HTMLSpanElement[] = [];
    let from = 0;
    const same = (a?: Cell, b?: Cell): boolean => a?.kind === b?.kind && a?.style === b?.style;
    for (let i = 1; i <= this.line.length; i++) {
      const first = this.line[from];
      if (!first || (i < this.line.length && same(first, this.line[i]))) continue;
      made.push(draw(first, this.line.slice(from, i).map((c) => c.text).join("")));
      from = i;
    }
    return made;
  }

  private drawLast(): void {
    this.last.replaceChildren(...this.runs());
  }

  /* How much of it is one control character or sequence; 0: the rest is still to come. */
  private obey(kind: string, text: string): number {
    const char = text[0];
    if (char === "\r") this.column = 0;
    else if (char === "\b") this.column = Math.max(0, this.column - 1);
    if (char !== "\x1b") return 1;
    const found = SEQUENCE.exec(text);
    if (!found) return text.length < LONGEST && text.length < 200 ? 0 : 1;
    const codes = (found[1] ?? "").split(/[;:]/).map(Number);
    if (found[2] === "m") this.styles.set(kind, restyle(this.styles.get(kind) ?? PLAIN, codes));
    if (found[2] === "K" && (codes[0] ?? 0) === 0) this.line.splice(this.column);
    if (found[2] === "K" && codes[0] === 2) this.line = [];
    while (this.line.length < this.column) this.line.push({ text: " ", kind, style: PLAIN });
    return found[0]?.length ?? 1;
  }
}
