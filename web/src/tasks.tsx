// What a run's tasks are like: distributions, tools, difficulty by tag and task, and tasks that deserve a look.
import type { ComponentChildren } from "preact";
import { Bars } from "./histograms";
import { useKeys } from "./keys";
import { address, type Run, screenKeys } from "./run";
import { clear, count, figure } from "./text";
import { Details, Notice, Sheet, Title, useAnswer } from "./ui";

interface Distribution { mean: number; quantiles: number[]; bins: number[] }

interface Played {
  episodes: number; failed: number; difficulty: number | null; interval: [number, number] | null; turns: number | null;
  discrimination?: number | null;
}

interface Profile {
  episodes: number; measured: string[]; distributions: Record<string, Distribution | null>;
  tools: { tool: string; calls: number; refused: number; episodes: number }[]; tags: Record<string, Played>;
  // Without a tool: the beginning of an episode, or its end.
  follows: { tool: string | null; next: string | null; times: number; share: number }[];
  tasks: Record<string, Played>; flags: { flag: string; means: string; tasks: string[] }[];
}

const MOST = 300;
const FOLLOWING = 4;
const SHOWN = 12;

export function Tasks({ run }: { run: Run }) {
  const [profile, error] = useAnswer<Profile>(`${run.address}/profile`);
  const help = useKeys(screenKeys(run.name));
  if (error) return <Notice words={error} />;
  if (profile === undefined) return <p>Loading the profile …</p>;
  const total = profile.tools.reduce((sum, one) => sum + one.calls, 0) || 1;
  const tasks = Object.entries(profile.tasks).sort((a, b) => (b[1].difficulty ?? -1) - (a[1].difficulty ?? -1));
  return (
    <>
      <Title words="Tasks" help={help}><span>{count(tasks.length)} tasks, {count(profile.episodes)} episodes</span></Title>
      {profile.flags.map((one) => (
        <p class="notice">
          {one.tasks.length} {one.tasks.length === 1 ? "task" : "tasks"}: {one.means}:{" "}
          {one.tasks.slice(0, SHOWN).map((task, n) => <>{n > 0 && ", "}<a href={address.task(run.name, task)}>{clear(task)}</a></>)}
          {one.tasks.length > SHOWN && `, and ${one.tasks.length - SHOWN} more`}
        </p>
      ))}
      <h2>Distributions over episodes</h2>
      <div class="charts">{Object.entries(profile.distributions).map(([name, one]) => one && <Histogram name={name} shown={one} />)}</div>
      <h2>Tools</h2>
      <Sheet
        heads={["tool", "calls", "share", "refused", "episodes", "what follows, of its calls"]}
        rows={profile.tools.map((one) => [
          <a href={address.episodes(run.name, `tool:${JSON.stringify(one.tool)}`)}>{clear(one.tool)}</a>,
          count(one.calls), percent(one.calls / total), percent(one.refused / one.calls), count(one.episodes), following(profile, one.tool),
        ])}
      />
      <p>Episodes with calls begin with: {following(profile, null)}</p>
      <Details name="what follows what">
        {() => <Sheet plain heads={["tool", "next", "times", "share"]} rows={profile.follows.map((one) => [
          clear(one.tool ?? "the beginning"), clear(one.next ?? "the end"), count(one.times), percent(one.share),
        ])} />}
      </Details>
      <h2>Difficulty</h2>
      <p class="dim">1 - mean score of {clear(profile.measured.join(", "))}, with its 95 % interval.</p>
      <Sheet heads={["tag", ...DIFFICULTY]} rows={Object.entries(profile.tags).map(([name, one]) => [clear(name), ...difficulty(one)])} />
      <Sheet
        heads={["task", ...DIFFICULTY, "discrimination"]}
        rows={tasks.slice(0, MOST).map(([task, one]) => [
          <a href={address.task(run.name, task)}>{clear(task)}</a>, ...difficulty(one), figure(one.discrimination),
        ])}
      />
      {tasks.length > MOST && <p class="dim">and {count(tasks.length - MOST)} easier ones</p>}
    </>
  );
}

const percent = (share: number): string => `${Math.round(100 * share)} %`;

// The most frequent tools after one.
function following({ follows }: Profile, tool: string | null): string {
  const next = follows.filter((one) => one.tool === tool).map((one) => `${one.next ?? "the end"} ${percent(one.share)}`);
  return clear(next.slice(0, FOLLOWING).join(", ") + (next.length > FOLLOWING ? `, ${next.length - FOLLOWING} more` : ""));
}

function Histogram({ name, shown }: { name: string; shown: Distribution }) {
  const [least = 0, , median = 0, , most = 0] = shown.quantiles;
  const words = `${name}: median ${figure(median)}, mean ${figure(shown.mean)}, from ${figure(least)} to ${figure(most)}`;
  return (
    <figure>
      <Bars counts={shown.bins} label={words} />
      <figcaption>{words}</figcaption>
    </figure>
  );
}

const DIFFICULTY = ["episodes", "failed", "difficulty", "95 % interval", "0 … 1", "turns"];

function difficulty({ episodes, failed, difficulty, interval, turns }: Played): ComponentChildren[] {
  const [low, high] = interval ?? [0, 0];
  const picture = interval && (
    <svg class="interval" viewBox="0 0 100 10" aria-hidden="true">
      <line x1="0" x2="100" y1="5" y2="5" />
      <rect x={100 * low} width={100 * (high - low)} y="3" height="4" />
      <circle cx={100 * (difficulty ?? 0)} cy="5" r="4" />
    </svg>
  );
  return [episodes, failed, figure(difficulty), interval ? `${figure(low)} … ${figure(high)}` : "–", picture, figure(turns)];
}
