// Builds the studio's page: node build.mjs
import { copyFile, mkdir, readFile, writeFile } from "node:fs/promises";
import { build } from "esbuild";

const out = new URL("../src/quintain/studio/static/", import.meta.url);
await mkdir(out, { recursive: true });
await build({
  absWorkingDir: import.meta.dirname,
  entryPoints: ["src/studio.tsx", "src/page.tsx", "src/studio.css"],
  outdir: out.pathname,
  bundle: true,
  minify: true,
  format: "iife",
  target: "es2022",
  charset: "utf8",
  legalComments: "none",
  logLevel: "warning",
});
await copyFile(new URL("src/index.html", import.meta.url), new URL("index.html", out));
const licence = await readFile(new URL("node_modules/preact/LICENSE", import.meta.url), "utf8");
await writeFile(new URL("licences.txt", out), `Preact\n\n${licence}`);
