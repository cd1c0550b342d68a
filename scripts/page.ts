// Builds the scripts of the web page. Each file of the package's `page/built/` folder stands under `/built/`;
// what a page needs at times only is a chunk of its own, loaded on use. The package and the image carry
// them; a checkout builds them with the first request.

import { basename, join } from 'node:path';
import { build, type Plugin } from 'esbuild';

const ROOT = join(import.meta.dirname, '..');

export type BuiltPage = {
  /** By name: `app.js`. */
  readonly files: ReadonlyMap<string, string>;
  /** The files they were made of. */
  readonly inputs: readonly string[];
};

/** The server puts the translation into it. */
const textsFromServer: Plugin = {
  name: 'texts from the server',
  setup({ onResolve }) {
    onResolve({ filter: /^\.{0,2}\/(?:.*\/)?texts\.js$/ }, () => ({
      path: '/texts.js',
      external: true,
    }));
  },
};

let built: Promise<BuiltPage> | undefined;

/** Built once in a process. */
export function buildPage(): Promise<BuiltPage> {
  built ??= bundlePage();
  return built;
}

async function bundlePage(): Promise<BuiltPage> {
  const { outputFiles, metafile } = await build({
    absWorkingDir: ROOT,
    entryPoints: ['src/http/page/app.ts', 'src/http/page/api-docs.ts'],
    outdir: 'built',
    chunkNames: '[name]-[hash]',
    bundle: true,
    splitting: true,
    format: 'esm',
    platform: 'browser',
    target: 'es2023',
    jsx: 'automatic',
    jsxImportSource: 'preact',
    plugins: [textsFromServer],
    minify: true,
    charset: 'utf8',
    legalComments: 'none',
    metafile: true,
    write: false,
    logLevel: 'warning',
  });
  return {
    files: new Map(outputFiles.map(({ path, text }) => [basename(path), text])),
    inputs: Object.keys(metafile.inputs),
  };
}
