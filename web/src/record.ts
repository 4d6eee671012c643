// Types of a line of traces.jsonl; fields with a default value are absent from the record.

// The beginning of a text that is too long for the page, its number of characters, and where it is answered with.
export interface Cut { cut: string; length: number; at: string }
export type Block = { type: "text"; text: string | Cut } | { type: "image"; media_type: string; data: string };
export type Content = string | Cut | Block[];

export interface ToolCall { id: string; name: string; arguments: string | Cut }

// The text of a content, without its pictures.
export const plain = (content: Content | undefined): string =>
  Array.isArray(content) ? content.map((one) => (one.type === "text" ? plain(one.text) : "")).join("") : typeof content === "string" ? content : (content?.cut ?? "");

export interface Message {
  role: "system" | "user" | "assistant" | "tool"; content?: Content; calls?: ToolCall[]; call_id?: string | null;
  reasoning?: string | Cut;
}

export interface Reward {
  name: string; level: "step" | "turn" | "phase" | "trajectory" | "group"; raw: number | null; value: number | null;
  weight?: number; turn?: number | null; step?: number | null; reason?: string;
}

export interface Step { call: ToolCall; observation: Content; is_error?: boolean; fault?: string | null }

export interface Reply {
  message: Message; usage?: { prompt?: number; completion?: number }; tokens?: { completion?: number[]; logprobs?: number[] } | null;
  policy_version?: number | null; finish_reason?: string;
}

export interface Turn {
  index: number; role?: string; thread?: number; branch?: number; keep?: number | null; added?: Message[];
  reply: Reply; steps?: Step[]; rewards?: Reward[]; state_digest?: string;
}

export interface Failure { part: string; kind: string; stage: string; type: string; message: string; turn: number }

export interface Trace {
  environment: string; fingerprint: string; split?: string; task: string; seed: number; member?: number;
  attempt?: number;
  // Task, member, attempt and turn of the episode that this one was forked from.
  forked?: [task: string, member: number, attempt: number, turn: number]; agent?: string;
  tags?: Record<string, string>; turns?: Turn[]; end?: string | null; reason?: string; failure?: Failure | null;
  rewards?: Reward[]; score?: number | null;
}

export interface Line { digest: string; trace: Trace }
export interface Criterion { name: string; level: string; weight: number; low: number; high: number; normalize: boolean }

// Content of environment.json.
export interface Environment {
  name: string; combine: string; criteria: Criterion[]; tools: { name: string; description: string }[];
  splits: Record<string, number | null>;
}

export const criteria = (environment: Environment | null) => new Map(environment?.criteria.map((one) => [one.name, one]));

const COMPONENTS: Record<string, string> = {
  T: "the tasks", H: "the harness", V: "the verifier", S: "the state", C: "the configuration",
  model: "the model endpoint",
};

export function component(letter: string): string {
  return COMPONENTS[letter] ? `${letter}, ${COMPONENTS[letter]}` : letter;
}
