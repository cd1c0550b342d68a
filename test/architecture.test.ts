import { execFileSync } from 'node:child_process';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';

const root = join(import.meta.dirname, '..');

/** Each goes to addresses of the configuration or of this machine, never to one from a text. */
const OWN_WAYS_OUT =
  /^src\/(kernel\/(home-state|bus\/store\/postgres\/connection)|channels\/email\/access-tokens|channels\/telegram\/[\w-]+|channels\/whatsapp\/(transport|media-download)|channels\/lark\/[\w-]+|channels\/terminal\/attached|cli\/doctor\/checks|cli\/login\/remote-login|lib\/net\/(address-rules|guarded-fetch|oauth-redirect|safe-fetch|tunnel)|providers\/[\w/-]+|features\/cluster\/(cluster|peer-[\w]+)|features\/voice\/transcribe)\.ts$/;

type SourceFile = { readonly path: string; readonly text: string; readonly code: string };

function filesUnder(folder: string): readonly SourceFile[] {
  return readdirSync(join(root, folder), { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile() && /\.(tsx?|js)$/.test(entry.name))
    .map((entry) => {
      const path = join(entry.parentPath, entry.name).slice(root.length + 1);
      const text = readFileSync(join(root, path), 'utf8');
      return { path, text, code: withoutComments(text) };
    });
}

/** Good enough for the checks below: comments of whole lines go, strings stay. */
function withoutComments(text: string): string {
  return text
    .split('\n')
    .filter((line) => !/^\s*(\/\/|\/\*|\*)/.test(line))
    .join('\n');
}

function countWords(files: readonly SourceFile[]): ReadonlyMap<string, number> {
  const counts = new Map<string, number>();
  for (const { code } of files) {
    for (const [word] of code.matchAll(/[\w$]+/g)) counts.set(word, (counts.get(word) ?? 0) + 1);
  }
  return counts;
}

/** The names of all settings in a JSON schema. */
function settingsOf(schema: unknown): readonly string[] {
  if (typeof schema !== 'object' || schema === null) return [];
  const own = 'properties' in schema ? Object.keys(schema.properties ?? {}) : [];
  return [...own, ...Object.values(schema).flatMap(settingsOf)];
}

const sources = filesUnder('src');
const pure = sources.filter((file) =>
  /\/rules\/|^src\/(kernel\/(message|access|config)|lib\/(text|json|markup|html))\/[^/]+$/.test(
    file.path,
  ),
);
const offenders = (files: readonly SourceFile[], pattern: RegExp) =>
  files.filter((file) => pattern.test(file.code)).map((file) => file.path);

describe('the architecture', () => {
  it('keeps rules free of clocks, randomness and waiting', () => {
    expect(offenders(pure, /\bDate\.now\(|new Date\(\)|Math\.random\(|performance\./)).toEqual([]);
    expect(offenders(pure, /\basync\b|\bawait\b|\bPromise\b|setTimeout|setInterval/)).toEqual([]);
    expect(offenders(pure, /\bprocess\.|from 'node:|\bfetch\(/)).toEqual([]);
  });

  it('has no state at module level', () => {
    expect(offenders(sources, /^(export )?(let|var) /m)).toEqual([]);
  });

  it('exports by name only and promises nothing for later', () => {
    expect(offenders(sources, /^export default /m)).toEqual([]);
    const unfinished = sources.filter((file) => /\bTODO\b|\bFIXME\b/.test(file.text));
    expect(unfinished.map((file) => file.path)).toEqual([]);
  });

  it('names no channel in shared code', () => {
    // Words of other programs' configurations, and of what a model may call an argument.
    const own = /^src\/(features\/(import\/|letters\/letters)|kernel\/config\/migration)/;
    const shared = sources.filter(
      ({ path }) => /^src\/(kernel|agent|features|tools|providers)\//.test(path) && !own.test(path),
    );
    expect(offenders(shared, /['"`](telegram|email|whatsapp|lark)['"`]/)).toEqual([]);
  });

  it('goes out to addresses that others name in one place only', () => {
    const goesOut =
      /(?:\bawait|\breturn|[=(?:,>])\s*fetch\(|from 'undici'|from 'node:(https?|net|tls|http2|dgram)'/;
    const isTypeOnly = /import type [^;]*from 'node:(https?|net|tls)'/g;
    const reaching = sources
      .filter((file) => !file.path.startsWith('src/http/page/'))
      .filter((file) => goesOut.test(file.code.replace(isTypeOnly, '')))
      .map((file) => file.path);
    expect(reaching).toContain('src/lib/net/safe-fetch.ts');
    expect(reaching.filter((path) => !OWN_WAYS_OUT.test(path))).toEqual([]);
  });

  it('cuts texts where no sign is halved', () => {
    // What stands in an index nobody reads.
    const own = /^src\/(lib\/text\/cut|kernel\/sessions\/index-file)\.ts$/;
    const halving = /\.slice\((?:0, |-)[^()]*\)\s*\.toWellFormed\(\)/;
    const cutting = sources.filter(({ code }) => halving.test(code)).map(({ path }) => path);
    expect(cutting.filter((path) => !own.test(path))).toEqual([]);
  });

  it('exports nothing that nobody uses', () => {
    const inSource = countWords(sources);
    const inTests = countWords(filesUnder('test'));
    const exported = /^export (?:async )?(const|function\*?|class|interface|type) ([\w$]+)/gm;
    const unused = sources.flatMap(({ path, code }) =>
      [...code.matchAll(exported)].flatMap(([, kind = '', name = '']) => {
        const isForm = kind === 'type' || kind === 'interface';
        const uses = (inSource.get(name) ?? 0) + (isForm ? (inTests.get(name) ?? 0) : 0);
        return uses > 1 ? [] : `${path}: ${name}`;
      }),
    );
    expect(unused).toEqual([]);
  });

  it('has no setting that nobody reads', () => {
    const schema = JSON.parse(readFileSync(join(root, 'config/config.schema.json'), 'utf8'));
    const readers = sources.filter(
      (file) =>
        !/^src\/kernel\/config\/[^/]+$|^src\/(features|channels|tools|providers)\/.*settings\.ts$/.test(
          file.path,
        ),
    );
    const read = countWords(readers);
    const settings = settingsOf(schema).filter((name) => name !== '$schema');
    expect(settings.length).toBeGreaterThan(200);
    expect(settings.filter((name) => !read.has(name))).toEqual([]);
  });

  it('hands no environment, and so no secret, to a thread', () => {
    const threads = sources.filter((file) => /\bnew Worker\(/.test(file.code));
    const heirs = threads.filter((file) => !/\benv: \{\}/.test(file.code));
    expect(heirs.map((file) => file.path)).toEqual([]);
  });

  it('really looks at every source file when it checks the layers', () => {
    const command = join(root, 'node_modules/.bin/depcruise');
    // From what `npm run layers` keeps, where nothing has changed since.
    const cached = ['--cache', '--cache-strategy', 'content'];
    const args = ['--config', '.dependency-cruiser.js', ...cached, '--output-type', 'json'];
    const output = execFileSync(command, [...args, 'src'], {
      cwd: root,
      maxBuffer: 64 * 1024 * 1024,
    });
    const { modules } = JSON.parse(output.toString()) as { modules: { source: string }[] };
    const seen = new Set(modules.map((module) => module.source));
    const typescript = sources.filter((file) => file.path.endsWith('.ts'));
    expect(typescript.map((file) => file.path).filter((path) => !seen.has(path))).toEqual([]);
  });
});
