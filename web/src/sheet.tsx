// A plain table: the first cell of each row is its heading.
import type { ComponentChildren } from "preact";

interface Props {
  heads: string[];
  rows: ComponentChildren[][];
  caption?: string;
}

export function Sheet({ heads, rows, caption }: Props) {
  return (
    <table>
      {caption && <caption>{caption}</caption>}
      <thead>
        <tr>{heads.map((word) => (word ? <th scope="col">{word}</th> : <td />))}</tr>
      </thead>
      <tbody>
        {rows.map(([first, ...cells]) => (
          <tr>
            <th scope="row">{first}</th>
            {cells.map((cell) => (
              <td>{cell}</td>
            ))}
          </tr>
        ))}
      </tbody>
    </table>
  );
}
