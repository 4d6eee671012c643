// The index of a run as typed arrays, continued as the run grows.

interface Said {
  name: string; kind: "number" | "text" | "lists"; type: keyof typeof TYPES; level?: string; base?: number; values?: string[];
  length: number; at: number[];
  // The first row, if not that of the message.
  from?: number;
}

export interface Head {
  from: number; rows: number; epoch: number; indexed: number; bytes: number; done: boolean; broken: number;
  left_out: number; columns: Said[];
  // Another one where labels have changed; then their columns are there from the first row on.
  labels: string;
}

const TYPES = { f4: Float32Array, u4: Uint32Array, u2: Uint16Array, u1: Uint8Array };
type Numbers = Float32Array | Uint32Array | Uint16Array | Uint8Array;

export class Column {
  data: Numbers;
  starts: Uint32Array = new Uint32Array(1);
  length = 0;
  values: string[] = [];

  constructor(readonly name: string, readonly kind: Said["kind"], type: Said["type"], readonly level: string | undefined) {
    this.data = new TYPES[type](0);
  }

  // The words of a row; "" for a column of numbers.
  text(row: number): string { return this.values[this.data[row] ?? 0] ?? ""; }

  number(row: number): number { return this.data[row] ?? NaN; }

  // The texts of rows with their numbers, the most frequent first; "none" is that of rows without one.
  counted(rows: Uint32Array): [text: string, count: number][] {
    const [{ data, starts, values }, isText] = [this, this.kind === "text"];
    const counts = new Uint32Array(values.length + 1);
    for (let at = 0; at < rows.length; at++) {
      const row = rows[at] ?? 0;
      let n = isText ? row : (starts[row] ?? 0);
      const end = isText ? row + 1 : (starts[row + 1] ?? 0);
      if (n === end) counts[values.length]! += 1;
      for (; n < end; n++) counts[data[n] ?? 0]! += 1;
    }
    const found = Array.from(counts, (held, n): [string, number] => [values[n] || "none", held]);
    return found.filter(([, held]) => held > 0).sort((a, b) => b[1] - a[1]);
  }

  append(said: Said, data: Numbers, starts: Uint32Array | undefined, from: number): void {
    if (from === 0) this.values = [];
    said.values?.forEach((value, n) => (this.values[(said.base ?? 0) + n] = value));
    // The first message is most of a run: its arrays are not copied.
    if (from === 0) [this.data, this.starts, this.length] = [data, starts ?? this.starts, data.length];
    else if (this.data.BYTES_PER_ELEMENT < data.BYTES_PER_ELEMENT) {
      this.data = (data.constructor as typeof Uint32Array).from(this.data);  // Its numbers have become larger.
      this.append(said, data, starts, from);
    } else if (starts === undefined) {
      this.data = grown(this.data, from + data.length);
      if (this.data instanceof Float32Array) this.data.fill(NaN, this.length, from);
      this.data.set(data, from);
      this.length = from + data.length;
    } else {
      const items = this.starts[from] ?? 0;
      this.data = grown(this.data, items + data.length);
      this.data.set(data, items);
      this.starts = grown(this.starts, from + starts.length);
      this.starts.set(starts.map((one) => items + one), from);
    }
  }
}

function grown<Kept extends Numbers>(old: Kept, length: number): Kept {
  if (old.length >= length) return old;
  const made = new (old.constructor as new (length: number) => Kept)(Math.max(length, old.length * 2));
  made.set(old);
  return made;
}

// More rows than a browser can hold. Times 2 ** 32, it is the largest integer that a number holds exactly.
const MOST = 2 ** 21;

export class Columns {
  rows = 0;
  epoch = 0;
  labels = "";
  head: Head | undefined;
  byName = new Map<string, Column>();

  // Appends a message. False: the index was made anew, and the columns must be asked for from the first row on.
  apply(message: ArrayBuffer): boolean {
    const size = new DataView(message).getUint32(0, true);
    const head: Head = JSON.parse(new TextDecoder().decode(new Uint8Array(message, 4, size)));
    if ((this.epoch && head.epoch !== this.epoch) || head.from > this.rows) {
      this.rows = this.epoch = 0;
      this.labels = "";
      this.byName.clear();
      return false;
    }
    this.epoch = head.epoch;
    if (this.labels !== head.labels) for (const one of this.byName.values()) if (one.level === "label") this.byName.delete(one.name);
    this.labels = head.labels;
    for (const said of head.columns) {
      const part = (n: number, length: number, type: Said["type"]) => {
        const place = 4 + size + (said.at[n] ?? 0);
        return new TYPES[type](message, place, length);
      };
      const column = this.byName.get(said.name) ?? new Column(said.name, said.kind, said.type, said.level);
      this.byName.set(said.name, column);
      const from = said.from ?? head.from;
      const count = head.rows - from + 1;
      const starts = said.kind !== "lists" ? undefined : said.at[1] === undefined ? new Uint32Array(count) : (part(1, count, "u4") as Uint32Array);
      column.append(said, part(0, said.length, said.type), starts, from);
    }
    this.rows = head.rows;
    this.head = head;
    return true;
  }

  // A column by the name that a person writes: `score`, a reward's or a tag's name, `seconds`.
  find(name: string): Column | undefined {
    const known = ALIASES[name] ?? name;
    return this.byName.get(known) ?? this.byName.get(`reward.${known}`) ?? this.byName.get(`tag.${known}`);
  }

  text(name: string, row: number): string { return this.byName.get(name)?.text(row) ?? ""; }

  // The texts of a row of a column of lists.
  list(name: string, row: number): string[] {
    const column = this.byName.get(name);
    return [...(column?.data.subarray(column.starts[row], column.starts[row + 1]) ?? [])].map((value) => column?.values[value] ?? "");
  }

  number(name: string, row: number): number { return this.byName.get(name)?.number(row) ?? NaN; }

  // The row of an episode, or -1.
  row(task: string, member: number, attempt: number): number {
    return this.group(task, attempt).find((row) => this.number("member", row) === member) ?? -1;
  }

  // The rows of a group, by member.
  group(task: string, attempt: number): number[] {
    const [tasks, attempts] = [this.byName.get("task"), this.byName.get("attempt")];
    const wanted = tasks?.values.indexOf(task) ?? -1;
    const found: number[] = [];
    for (let row = 0; row < this.rows; row++) {
      if (tasks?.data[row] === wanted && attempts?.data[row] === attempt) found.push(row);
    }
    return found.sort((a, b) => this.number("member", a) - this.number("member", b));
  }

  // Rows as CSV, with all columns; the texts of a list are one cell.
  csv(rows: Uint32Array): string {
    const number = (value: number) => (Number.isNaN(value) ? "" : String(Number(value.toPrecision(value % 1 ? 7 : 16))));
    const cell = (one: Column, row: number) =>
      one.kind === "lists" ? this.list(one.name, row).join(", ") : one.kind === "text" ? one.text(row) : number(one.number(row));
    const all = [...this.byName.values()];
    const lines = [all.map((one) => one.name), ...Array.from(rows, (row) => all.map((one) => cell(one, row)))];
    return lines.map((line) => line.map((text) => (/[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text)).join(",")).join("\n");
  }

  // Sorts rows in place: "score" upwards, "-score" downwards; rows without a value come last.
  sort(rows: Uint32Array, key: string): Uint32Array {
    const sign = key.startsWith("-") ? -1 : 1;
    const column = this.find(key.replace(/^-/, ""));
    if (column === undefined || column.kind === "lists") return rows;
    const rank = new Uint32Array(column.values.length);
    // It takes 15 ms to load, so numbers do without it.
    const compare = column.kind === "text" ? new Intl.Collator("en", { numeric: true }).compare : () => 0;
    column.values.map((_, n) => n).sort((a, b) => compare(column.values[a] ?? "", column.values[b] ?? "")).forEach((value, place) => (rank[value] = place));
    // The bits of a float are in its order, those of a negative one in the opposite.
    const bits = column.data instanceof Float32Array ? new Int32Array(column.data.buffer, column.data.byteOffset, column.data.length) : column.data;
    const order = (value: number) => (column.kind === "text" ? (rank[value] ?? 0) : value < 0 ? -(2 ** 31) - value : value);
    // One number holds the order and the row, so that the browser sorts without a call for each pair.
    const keys = new Float64Array(rows.length);
    rows.forEach((row, n) => (keys[n] = (Number.isNaN(column.number(row)) ? 2 ** 32 - 1 : sign * order(bits[row] ?? 0)) * MOST + row));
    keys.sort().forEach((key, n) => (rows[n] = key - Math.floor(key / MOST) * MOST));
    return rows;
  }
}

const ALIASES: Record<string, string> = { seconds: "total_s", ver: "version" };
