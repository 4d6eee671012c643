// What steps changed in the world, and which change a verdict speaks of.
import { criteria, type Environment, type Reward, type Trace } from "./record";

// A side is JSON text; absent where there is no value.
export interface ChangeText { path: string; before?: string; after?: string }

export interface StepChange {
  turn: number; step: number; changes: ChangeText[];
  // Changes that are left out.
  more?: number;
}

export interface Changes {
  // First turn that the environment answers otherwise.
  diverged?: number | null;
  // The environment's code is not the one that made the record.
  stale?: boolean; steps: StepChange[];
}

export const words = (text: string): Set<string> => new Set(text.match(/[\p{L}\p{N}_-]+/gu) ?? []);

// How well a reason names a place such as crm.leads["L-45527"].reason: keys count double. 0: it does not.
export function names(reason: string, path: string): number {
  const said = words(reason);
  let found = 0;
  for (const [, key, field] of path.matchAll(/\["?((?:[^"\\\]]|\\.)*)"?\]|([\p{L}\p{N}_-]+)/gu)) {
    const name = key ?? field ?? "";
    if (name && [...words(name)].every((word) => said.has(word))) found += key === undefined ? 1 : 2;
  }
  return found >= 2 ? found : 0;
}

// The last change of the place that a reason names best.
export function lastNamed(changes: Changes, reason: string): { at: StepChange; change: ChangeText } | undefined {
  const all = changes.steps.flatMap((at) => at.changes.map((change) => ({ at, change, fits: names(reason, change.path) })));
  const best = all.reduce((most, one) => Math.max(most, one.fits), 1);
  return all.findLast((one) => one.fits === best);
}

export interface Cost {
  reward: Reward;
  // The most that the criterion could deliver, weight included, and what is missing to it; undefined: it was skipped.
  best: number | undefined; cost: number | undefined;
}

// What each criterion of the whole episode delivered, and what that cost: in a product, the factor itself.
export function costs(trace: Trace, environment: Environment | null): Cost[] {
  const known = criteria(environment);
  return (trace.rewards ?? [])
    .filter((one) => one.level === "trajectory" || one.level === "group")
    .map((reward) => {
      const rule = known.get(reward.name);
      const [low, high] = !rule || rule.normalize ? [0, 1] : [rule.low, rule.high];
      const weight = reward.weight ?? 1;
      if (reward.value === null) return { reward, best: undefined, cost: undefined };
      const best = Math.max(weight * low, weight * high);
      return { reward, best, cost: best - weight * reward.value };
    });
}
