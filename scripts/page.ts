// Builds the views of the web page, TypeScript and Preact, into one module. The package and the image
// carry it; a checkout builds it with the first request for it.

import { join } from 'node:path';
import { build } from 'esbuild';

const ROOT = join(import.meta.dirname, '..');

/** `inputs`: the files it was made of. */
export async function buildConsole(): Promise<{
  readonly code: string;
  readonly inputs: readonly string[];
}> {
  const { outputFiles, metafile } = await build({
    absWorkingDir: ROOT,
    entryPoints: ['src/http/page/console/main.tsx'],
    bundle: true,
    format: 'esm',
    platform: 'browser',
    target: 'es2023',
    jsx: 'automatic',
    jsxImportSource: 'preact',
    // The server puts the translation into it.
    external: ['/texts.js'],
    minify: true,
    charset: 'utf8',
    legalComments: 'none',
    metafile: true,
    write: false,
    logLevel: 'warning',
  });
  return {
    code: outputFiles.map(({ text }) => text).join(''),
    inputs: Object.keys(metafile.inputs),
  };
}
