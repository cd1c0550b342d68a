// Builds the scripts and the stylesheet of the web page, and the scripts of the frame that draws diagrams.
// The package has them in `page/built/` and `page/diagrams/`; what a page needs at times only is a chunk
// of its own, loaded on use. A checkout builds them with the first request.

import { globSync } from 'node:fs';
import { basename, join } from 'node:path';
import { type BuildOptions, build, type Plugin } from 'esbuild';

const ROOT = join(import.meta.dirname, '..');

export type BuiltPage = {
  /** By name: `app.js`. */
  readonly files: ReadonlyMap<string, string>;
  /** The files they were made of. */
  readonly inputs: readonly string[];
};

/** The server puts the translation into it, and serves it beside the scripts. */
const textsFromServer: Plugin = {
  name: 'texts from the server',
  setup({ onResolve }) {
    onResolve({ filter: /^\.{0,2}\/(?:.*\/)?texts\.js$/ }, () => ({
      path: './texts.js',
      external: true,
    }));
  },
};

/**
 * The layout engine ELK may not be merged into files under our license (EPL-2.0), and is larger than
 * all kinds of diagrams together: Dagre lays out what asks for it.
 */
const dagreForElk: Plugin = {
  name: 'Dagre for ELK',
  setup({ onResolve }) {
    onResolve({ filter: /^\.\/elk-\w+\.mjs$/ }, ({ resolveDir }) => {
      const [name] = globSync('dagre-*.mjs', { cwd: resolveDir });
      if (name === undefined) throw new Error('Mermaid has no chunk for Dagre');
      return { path: join(resolveDir, name) };
    });
  },
};

const OPTIONS = {
  absWorkingDir: ROOT,
  outdir: 'built',
  chunkNames: '[name]-[hash]',
  bundle: true,
  splitting: true,
  format: 'esm',
  platform: 'browser',
  target: 'es2023',
  minify: true,
  charset: 'utf8',
  legalComments: 'none',
  metafile: true,
  write: false,
  logLevel: 'warning',
} as const satisfies BuildOptions;

async function bundle(options: BuildOptions): Promise<BuiltPage> {
  const { outputFiles, metafile } = await build({ ...options, ...OPTIONS });
  return {
    files: new Map(outputFiles.map(({ path, text }) => [basename(path), text])),
    inputs: Object.keys(metafile.inputs),
  };
}

/** Each is built once in a process. */
function builder(options: BuildOptions): () => Promise<BuiltPage> {
  let built: Promise<BuiltPage> | undefined;
  return () => {
    built ??= bundle(options);
    return built;
  };
}

export const buildPage = builder({
  entryPoints: ['app.tsx', 'api-docs.tsx', 'page.css'].map((name) => `src/http/page/${name}`),
  jsx: 'automatic',
  jsxImportSource: 'preact',
  plugins: [textsFromServer],
});

/** What the frame of a diagram loads: apart, because it is another document with other rights. */
export const buildDiagrams = builder({
  entryPoints: ['src/http/page/diagrams/frame.ts'],
  plugins: [dagreForElk],
});
