// Builds dist/, the program as one bundle, for the package and the image (a checkout runs its
// sources). The packages in `dependencies` of package.json stay outside and are installed beside
// it: native modules, and libsignal (GPL-3.0), which WhatsApp's library uses: that must not be
// merged into files under our license.

import {
  cpSync,
  globSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { basename, dirname, join, resolve } from 'node:path';
import {
  type BuildOptions,
  build,
  type CommonOptions,
  type Metafile,
  type Plugin,
  transform,
} from 'esbuild';
import { buildDiagrams, buildPage } from './page.ts';

const ROOT = join(import.meta.dirname, '..');
const PACKAGES = join(ROOT, 'node_modules');
const DIST = join(ROOT, 'dist');
/** Node runs the sources as they are. Lowered, a pattern of Unicode properties would be compiled with each call. */
const TARGET = 'esnext';
const MINIFY = true;

type Manifest = {
  readonly name: string;
  readonly version: string;
  readonly license?: string;
  readonly dependencies: Readonly<Record<string, string>>;
};

const manifestOf = (folder: string): Manifest =>
  JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8'));
const inPackages = (path: string) => readFileSync(join(PACKAGES, path), 'utf8');

// Our own modules that are loaded on demand.

/**
 * What most gateways never need, or need later, is in chunks of its own: the text of the program
 * stays in memory. Each start would be slower with a chunk for every module that it loads on demand.
 */
const CHUNKS = new RegExp(
  `/src/(?:${[
    'channels/(?:whatsapp|lark|email|terminal)/',
    'cli/(?!explain-error|flag-values|gateway-command|terminal)',
    'features/[\\w-]+/(?:[\\w-]+-)?(?:cli|doctor|setup)\\.ts',
    'features/(?:backup|import|mcp|modes|setup|update|voice|workflows)/(?!index|install|rules)',
    'features/(?:cluster/cluster|semantic-search/index|spending/usage-routes)\\.ts',
    'http/routes\\.ts',
    'kernel/(?:bus/store/postgres/|media/(?:bucket\\.ts|extract/)|own-program|recovery)',
    'labs/',
    'lib/(?:net/tunnel|qr-code)\\.ts',
    'providers/(?:anthropic|text-tools)/',
    'tools/search/rules/',
  ].join('|')})`,
);

/**
 * The chunk of a CommonJS package has only a default export; Node provides its named exports too.
 */
const NAMED =
  '(m)=>Object.keys(m).join()==="default"?Object.assign(Object.create(m.default),{default:m.default}):m';

/** All others are in the same file as the code that loads them, and are evaluated on demand. */
const ownModules: Plugin = {
  name: 'own modules',
  setup({ onLoad }) {
    onLoad({ filter: /\/src\/.*\.ts$/ }, async ({ path }) => {
      const source = readFileSync(path, 'utf8');
      const { code } = await transform(source, { loader: 'ts', target: TARGET });
      const contents = code
        .replaceAll(/\bimport\("([^"./][^"]*)"\)/g, `$&.then(${NAMED})`)
        .replaceAll(/\bimport\("(\.[^"]+\.ts)"\)/g, (chunk, module) =>
          CHUNKS.test(resolve(dirname(path), module))
            ? chunk
            : `Promise.resolve().then(() => require("${module}"))`,
        );
      return { contents, loader: 'js' };
    });
  },
};

// Files that packages read from their own folder at run time, and their replacements in the bundle.

const PATCHES: readonly {
  readonly file: string;
  readonly from: string | RegExp;
  readonly to: (...found: readonly string[]) => string;
}[] = [
  {
    // Hundreds of kinds of messages, of which an account meets a few: each is made with its first use.
    file: '@whiskeysockets/baileys/WAProto/index.js',
    from: /^(?:(import .*)|( +)(?:([\w.]+)\.(\w+) = \(function\(\) \{|\}\)\(\);))$/gm,
    to: (_line, begin, indent, owner, name) => {
      if (begin !== undefined) return `${begin}${MADE_LATER}`;
      return owner === undefined ? `${indent}});` : `${indent}$later(${owner}, "${name}", () => {`;
    },
  },
  {
    // It formats two stacks and makes an error for each frame that is sent in time.
    file: '@whiskeysockets/baileys/lib/Utils/generics.js',
    from: /export async function promiseTimeout\(.*?^\}/ms,
    to: () => `export async function promiseTimeout(ms, promise) {
      if (!ms) return new Promise(promise);
      let timer;
      return new Promise((resolve, reject) => {
        const late = () => reject(new Boom('Timed Out', { statusCode: DisconnectReason.timedOut }));
        timer = setTimeout(late, ms);
        promise(resolve, reject);
      }).finally(() => clearTimeout(timer));
    }`,
  },
  {
    // Node finds out by two exceptions that a key is bytes.
    file: '@whiskeysockets/baileys/lib/Utils/crypto.js',
    from: /import \{ createCipheriv,|(create(?:Cipheriv|Decipheriv|Hmac)\([^,]+), key/g,
    to: (_found, call) =>
      call === undefined
        ? 'import { createSecretKey, createCipheriv,'
        : `${call}, createSecretKey(key)`,
  },
  {
    // The logger of a socket that is given none.
    file: '@whiskeysockets/baileys/lib/Utils/logger.js',
    from: /^.*$/s,
    to: () =>
      'const none = () => {}; export default { child() { return this }, trace: none, debug: none, info: none, warn: none, error: none };',
  },
  {
    file: 'jsdom/lib/jsdom/living/css/helpers/computed-style.js',
    from: /fs\.readFileSync\([^;]+default-stylesheet\.css[^;]+\)/,
    to: () => JSON.stringify(inPackages('jsdom/lib/jsdom/browser/default-stylesheet.css')),
  },
  {
    // A thread for requests of a page's scripts; scripts never run.
    file: 'jsdom/lib/jsdom/living/xhr/XMLHttpRequest-impl.js',
    from: 'require.resolve("./xhr-sync-worker.js")',
    to: () => 'undefined',
  },
  {
    // Its messages in 50 languages, all of which a start would evaluate.
    file: 'zod/v4/locales/index.js',
    from: /^.*$/s,
    to: () => 'export { default as en } from "./en.js";',
  },
  ...['data', 'data-patch', 'version'].map((name) => ({
    file: `css-tree/lib/${name}.js`,
    from: 'const require = createRequire(import.meta.url);',
    to: () => '',
  })),
  {
    // The web page is served by HTTP/1.1.
    file: 'fastify/lib/server.js',
    from: "require('node:http2')",
    to: () => 'undefined',
  },
  {
    file: '@larksuiteoapi/node-sdk/lib/index.js',
    from: 'let cachedVersion;',
    to: () => {
      const { version } = manifestOf(join(PACKAGES, '@larksuiteoapi/node-sdk'));
      return `let cachedVersion = '${version}';`;
    },
  },
];

const MADE_LATER = `
const $later = (owner, name, make) => {
  const set = (value) => {
    Object.defineProperty(owner, name, { value, writable: true, enumerable: true, configurable: true });
    return value;
  };
  Object.defineProperty(owner, name, { get: () => set(make()), set, enumerable: true, configurable: true });
};`;

const patches: Plugin = {
  name: 'patches',
  setup({ onLoad, onResolve }) {
    // Two megabytes of WebAssembly for a few hashes.
    onResolve({ filter: /^whatsapp-rust-bridge$/ }, () => ({
      path: join(ROOT, 'scripts/rust-bridge.ts'),
    }));
    for (const { file, from, to } of PATCHES) {
      onLoad({ filter: new RegExp(`/${file.replaceAll('.', '\\.')}$`) }, () => {
        const contents = inPackages(file).replace(from, to);
        if (contents === inPackages(file)) throw new Error(`${file} has nothing like ${from}`);
        return { contents, loader: 'js' };
      });
    }
  },
};

/**
 * CommonJS packages require modules of Node, and optional packages. Unlike Node's own `require`
 * this one leaves unused parts of a module unloaded, such as the fetch of `node:http`.
 */
const REQUIRE = `const require=(id)=>{const found=process.getBuiltinModule(id);if(found)return found;\
throw Object.assign(new Error("Cannot find module '"+id+"'"),{code:"MODULE_NOT_FOUND"})};`;

const OUTSIDE = Object.keys(manifestOf(ROOT).dependencies);

const OPTIONS = {
  absWorkingDir: ROOT,
  outdir: DIST,
  // In one folder: threads, descriptions and the page are found beside the code that names them.
  entryNames: '[name]',
  chunkNames: '[name]-[hash]',
  bundle: true,
  splitting: true,
  format: 'esm',
  platform: 'node',
  target: TARGET,
  minify: MINIFY,
  legalComments: 'none',
  metafile: true,
  write: false,
  external: OUTSIDE,
  plugins: [patches, ownModules],
  logLevel: 'warning',
} as const satisfies BuildOptions;

/**
 * A single non-ASCII character doubles the memory of a file. Those left by esbuild are in regular
 * expressions, where the escape means the same.
 */
const asAscii = (code: string) =>
  code.replaceAll(
    /[\u0080-\uffff]/g,
    (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`,
  );

/**
 * Modules of Node by the same way as `require` above. An `import` would read each of their exports,
 * of which `WebSocket` of `node:http` alone loads Node's fetch.
 */
const withoutNodeImports = (code: string) =>
  code.replaceAll(
    /\bimport(?: ?([\w$]+))?,?(?:(\{[^}]*\})| ?\* ?as ([\w$]+))? ?from ?"(node:[\w/]+)";/g,
    (_import, whole = '', names = '', all = '', id) => {
      const parts = names.replaceAll(/ as /g, ':');
      const bound = [whole, all, parts].filter(Boolean);
      return bound.map((to) => `const ${to}=process.getBuiltinModule("${id}");`).join('');
    },
  );

/** Writes a module with its chunks; resolves with the files it was made of. */
async function bundle(entry: string): Promise<readonly string[]> {
  const { metafile, outputFiles } = await build({
    ...OPTIONS,
    entryPoints: [entry],
    // The program may have a chunk of the same content, which is a script.
    chunkNames: 'thread-[name]-[hash]',
    banner: { js: REQUIRE },
  });
  for (const { path, text } of outputFiles) writeFileSync(path, withoutNodeImports(asAscii(text)));
  return Object.keys(metafile.inputs);
}

// The program: scripts that load-parts.ts runs. One has what each start needs; the others are loaded on
// demand.

/** @see PartFunction in load-parts.ts */
const PART = {
  format: 'cjs',
  platform: 'node',
  target: TARGET,
  minify: MINIFY,
  legalComments: 'none',
  logLevel: 'warning',
  define: { 'import.meta': '__meta' },
} as const satisfies CommonOptions;
const HEAD = '(function(module,exports,require,__load,__outside,__meta){"use strict";';
const TAIL = '})';
const REQUIRED = /\brequire\("((?:@[^/"]+\/)?[^/"]+)(?:\/[^"]+)?"\)/g;

const writePart = (name: string, text: string) =>
  writeFileSync(
    join(DIST, name),
    asAscii(text).replaceAll(REQUIRED, (required, name) =>
      OUTSIDE.includes(name) ? `__outside${required.slice('require'.length)}` : required,
    ),
  );

/** Writes the program; resolves with the files it was made of. */
async function bundleProgram(): Promise<readonly string[]> {
  const { metafile, outputFiles } = await build({ ...OPTIONS, entryPoints: ['src/main.ts'] });
  const chunks = new Map(
    outputFiles.map(({ path, text }) => [
      `./${basename(path)}`,
      withoutNodeImports(text).replaceAll(/\bimport\((?="\.\/)/g, '__load('),
    ]),
  );
  const started = importedBy('./main.js', metafile);
  const shared = [...started].map((chunk) => `export * as "${chunk}" from "${chunk}";`);
  const program = await build({
    ...PART,
    stdin: { contents: shared.join('\n'), resolveDir: ROOT },
    bundle: true,
    write: false,
    external: OUTSIDE,
    plugins: [inMemory(chunks)],
    banner: { js: HEAD },
    footer: { js: TAIL },
  });
  writePart('program.js', program.outputFiles.map(({ text }) => text).join(''));
  const onDemand = [...chunks].filter(([name]) => !started.has(name));
  await Promise.all(
    onDemand.map(async ([name, text]) => {
      const { code } = await transform(text, { ...PART, banner: HEAD, footer: TAIL });
      writePart(name, code);
    }),
  );
  return Object.keys(metafile.inputs);
}

/** This chunk, and those that it imports, directly or not. */
function importedBy(chunk: string, { outputs }: Metafile): ReadonlySet<string> {
  const found = new Set([chunk]);
  for (const name of found) {
    const { imports = [] } = outputs[`dist/${basename(name)}`] ?? {};
    for (const { path, kind, external } of imports) {
      if (kind === 'import-statement' && external !== true) found.add(`./${basename(path)}`);
    }
  }
  return found;
}

const inMemory = (files: ReadonlyMap<string, string>): Plugin => ({
  name: 'in memory',
  setup({ onResolve, onLoad }) {
    onResolve({ filter: /^\.\// }, ({ path }) => ({ path, namespace: 'memory' }));
    onLoad({ filter: /.*/, namespace: 'memory' }, ({ path }) => ({
      contents: files.get(path) ?? '',
    }));
  },
});

// The licenses of the packages that became part of the bundle.

/** Files under these may be merged into ours. */
const PERMISSIVE = new Set(
  'MIT MIT-0 ISC 0BSD BSD-2-Clause BSD-3-Clause Apache-2.0 BlueOak-1.0.0 CC0-1.0 Unlicense Zlib'.split(
    ' ',
  ),
);
const MIT = /^\s*(?:the )?MIT license/i;
const LICENSE_FILE = /^(?:licen[cs]e|copying|notice)/i;

const licenseFiles = (folder: string) =>
  readdirSync(folder)
    .filter((file) => LICENSE_FILE.test(file))
    .map((file) => readFileSync(join(folder, file), 'utf8').trim());

/** Of a package whose manifest names none. */
const licenseInFile = (folder: string) =>
  licenseFiles(folder).some((text) => MIT.test(text)) ? 'MIT' : '';

/** @throws Error if a package must not be merged */
function licenseOf(folder: string): string {
  const { name, version, license = licenseInFile(folder) } = manifestOf(folder);
  const choices = license.replaceAll(/[()]/g, '').split(' OR ');
  const isPermissive = choices.some((all) =>
    all.split(' AND ').every((one) => PERMISSIVE.has(one)),
  );
  if (!isPermissive) throw new Error(`${name} has the license "${license}"`);
  const texts = licenseFiles(folder);
  return [`${name} ${version} (${license})`, ...texts].join('\n\n');
}

function licensesOf(files: readonly string[]): string {
  const folders = files.flatMap(
    (file) => /^.*node_modules\/(?:@[^/]+\/)?[^/]+/.exec(file)?.[0] ?? [],
  );
  const texts = [...new Set(folders)].sort().map((folder) => licenseOf(join(ROOT, folder)));
  return `${texts.join(`\n\n${'-'.repeat(80)}\n\n`)}\n`;
}

rmSync(DIST, { recursive: true, force: true });
mkdirSync(DIST);
// Each thread separately: code shared with the program would be in chunks that a start reads.
const threads = globSync('src/**/*-worker.ts', { cwd: ROOT });
const made = await Promise.all([bundleProgram(), ...threads.map(bundle)]);
await build({
  ...PART,
  ...{ format: 'esm', define: {} },
  entryPoints: { main: join(ROOT, 'scripts/load-parts.ts') },
  outdir: DIST,
});
const parts = { built: await buildPage(), diagrams: await buildDiagrams() };
const inputs = [...made, ...Object.values(parts).map((part) => part.inputs)].flat();
writeFileSync(join(DIST, 'THIRD-PARTY-LICENSES.txt'), licensesOf(inputs));
cpSync(join(ROOT, 'src/http/page'), join(DIST, 'page'), {
  recursive: true,
  // Scripts and styles are built, but for the texts: the server puts the translation into them.
  filter: (path) =>
    !/\.(?:[jt]sx?|json|css)$|\/(?:chat|console)$/.test(path) || path.endsWith('/texts.js'),
});
for (const [folder, { files }] of Object.entries(parts)) {
  mkdirSync(join(DIST, 'page', folder), { recursive: true });
  for (const [name, text] of files) writeFileSync(join(DIST, 'page', folder, name), text);
}
cpSync(join(ROOT, 'src/tools/descriptions'), join(DIST, 'descriptions'), { recursive: true });
cpSync(join(PACKAGES, 'ttag/dist/ttag.esm.min.mjs'), join(DIST, 'ttag.esm.min.mjs'));
