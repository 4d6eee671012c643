// The tokens that a turn was drawn as, shaded by their logprob.
import { clear, count, figure, known, marked, mean } from "./text";
import { Details, Notice, useAnswer } from "./ui";

type Token = [id: number, text: string, logprob: number | null];

// Logprobs below which a token has one more step of shade; and how many of the least likely ones are listed.
const STEPS = [-0.1, -0.7, -2.3, -4.6];
const LISTED = 5;

const text = ([id, said]: Token): string => said || `#${id}`;
const shade = (logprob: number | null): string => `token shade-${STEPS.filter((step) => (logprob ?? 0) < step).length}`;

// A fold that asks for the tokens once it is opened.
export const Tokens = ({ address }: { address: string }) => <Details name="tokens">{() => <Drawn address={address} />}</Details>;

function Drawn({ address }: { address: string }) {
  const [tokens, error] = useAnswer<Token[]>(address);
  if (tokens === undefined) return <Notice words={error} />;
  const least = tokens.filter((one) => one[2] !== null).sort((a, b) => (a[2] ?? 0) - (b[2] ?? 0)).slice(0, LISTED);
  const drawn = known(tokens.map((one) => one[2] ?? Number.NaN));
  return (
    <>
      <p>
        {count(tokens.length)} tokens{drawn.length > 0 && `, mean logprob ${figure(mean(drawn))}; least likely: `}
        {least.map((one, n) => <>{n > 0 && ", "}<code>{marked(text(one))}</code> {figure(one[2])}</>)}
      </p>
      <pre>{tokens.map((one) => <span class={shade(one[2])} title={clear(`#${one[0]}, logprob ${figure(one[2])}`)}>{marked(text(one))}</span>)}</pre>
    </>
  );
}
