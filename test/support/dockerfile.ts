// A Dockerfile carried out on this machine, for its steps and not for its base: each stage is a folder
// that bubblewrap puts over this machine's /usr. What needs a registry of images or of Debian packages
// is left out, and packages for developers are those of this checkout.

import { execFileSync } from 'node:child_process';
import { cpSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { basename, dirname, join, resolve } from 'node:path';

export type ImageConfig = {
  readonly User: string;
  readonly Entrypoint: readonly string[];
  readonly Cmd: readonly string[];
  readonly Volumes: Readonly<Record<string, unknown>>;
  readonly Env: readonly string[];
  readonly Healthcheck: { readonly Test: readonly string[] };
};

type Instruction = { readonly name: string; readonly text: string };
type Stage = {
  readonly root: string;
  config: ImageConfig;
  workdir: string;
  hasDeveloperPackages: boolean;
};

const FIRST_CONFIG: ImageConfig = {
  User: 'root',
  Entrypoint: [],
  Cmd: [],
  Volumes: {},
  Env: ['PATH=/usr/local/bin:/usr/bin:/bin'],
  Healthcheck: { Test: [] },
};
/** What a stage can write; all else is this machine's, and cannot be changed. */
const OWN_FOLDERS = ['app', 'data', 'home/node', 'tmp', 'usr/local/bin'];
const LEFT_OUT = /^(?:apt-get |npm cache clean|rm -rf \/var\/lib\/apt|strip |useradd )/;

/** Comments end at their line, also between the lines of one instruction. */
function instructionsOf(dockerfile: string): readonly Instruction[] {
  const lines = dockerfile.split('\n').filter((line) => !line.startsWith('#'));
  return lines
    .join('\n')
    .replaceAll(/\\\n\s*/g, ' ')
    .split('\n')
    .filter((line) => line.trim() !== '')
    .map((line) => {
      const [, name = '', text = ''] = /^(\w+)\s+(.*)$/.exec(line) ?? [];
      return { name, text };
    });
}

const words = (text: string): readonly string[] =>
  text.startsWith('[') ? JSON.parse(text) : text.split(/\s+/);

export class DockerfileRun {
  readonly #checkout: string;
  readonly #folder: string;
  /** What .dockerignore lets in. */
  readonly #context: ReadonlySet<string>;
  readonly #stages = new Map<string, Stage>();
  #stage: Stage;

  /** @param folder for the files of the stages */
  constructor(checkout: string, folder: string) {
    this.#checkout = checkout;
    this.#folder = folder;
    const ignore = readFileSync(join(checkout, '.dockerignore'), 'utf8').split('\n');
    if (ignore[0] !== '*') throw new Error('.dockerignore does not begin with everything');
    this.#context = new Set(ignore.flatMap((line) => /^!(.+)$/.exec(line)?.[1] ?? []));
    this.#stage = this.#newStage('', '');
    for (const each of instructionsOf(readFileSync(join(checkout, 'Dockerfile'), 'utf8'))) {
      this.#carryOut(each);
    }
  }

  get root(): string {
    return this.#stage.root;
  }

  get config(): ImageConfig {
    return this.#stage.config;
  }

  /** What runs a command with the files, variables and working folder of the last stage. */
  command(command: readonly string[]): readonly string[] {
    const { root, config, workdir, hasDeveloperPackages } = this.#stage;
    const packages = [join(this.#checkout, 'node_modules'), join(workdir, 'node_modules')];
    const own = OWN_FOLDERS.flatMap((path) => ['--bind', join(root, path), `/${path}`]);
    const env = config.Env.flatMap((each) => {
      const at = each.indexOf('=');
      return ['--setenv', each.slice(0, at), each.slice(at + 1)];
    });
    return [
      'bwrap',
      ...['--unshare-user', '--uid', '1000', '--gid', '1000', '--die-with-parent'],
      ...['--ro-bind', '/usr', '/usr', '--ro-bind', join(root, 'etc'), '/etc'],
      ...['bin', 'sbin', 'lib', 'lib64'].flatMap((each) => [
        '--symlink',
        `usr/${each}`,
        `/${each}`,
      ]),
      ...['--proc', '/proc', '--dev', '/dev'],
      ...own,
      ...(hasDeveloperPackages ? ['--ro-bind', ...packages] : []),
      ...['--ro-bind', process.execPath, '/usr/local/bin/node'],
      ...['--clearenv', ...env, '--chdir', workdir, ...command],
    ];
  }

  #newStage(name: string, base: string): Stage {
    const root = join(this.#folder, String(this.#stages.size));
    const parent = this.#stages.get(base);
    if (parent === undefined) makeBase(root);
    else link(parent.root, root);
    const { config, workdir } = parent ?? { config: FIRST_CONFIG, workdir: '/' };
    const stage = { root, config, workdir, hasDeveloperPackages: false };
    this.#stages.set(name, stage);
    return stage;
  }

  #carryOut({ name, text }: Instruction): void {
    const stage = this.#stage;
    const set = (config: Partial<ImageConfig>) => {
      stage.config = { ...stage.config, ...config };
    };
    switch (name) {
      case 'FROM': {
        const [base = '', , as = ''] = text.split(' ');
        this.#stage = this.#newStage(as === '' ? `stage ${this.#stages.size}` : as, base);
        return;
      }
      case 'WORKDIR':
        stage.workdir = text;
        return;
      case 'COPY':
        this.#copy(text);
        return;
      case 'RUN':
        this.#do(text);
        return;
      case 'ENV':
        set({ Env: [...stage.config.Env, ...text.split(/\s+/)] });
        return;
      case 'USER':
        set({ User: text });
        return;
      case 'VOLUME':
        set({ Volumes: { ...stage.config.Volumes, [text]: {} } });
        return;
      case 'HEALTHCHECK':
        set({ Healthcheck: { Test: ['CMD', ...words(text.slice(text.indexOf('[')))] } });
        return;
      case 'ENTRYPOINT':
        set({ Entrypoint: words(text) });
        return;
      case 'CMD':
        set({ Cmd: words(text) });
        return;
      case 'EXPOSE':
      case 'STOPSIGNAL':
        return;
      default:
        throw new Error(`unknown instruction ${name}`);
    }
  }

  #copy(text: string): void {
    const parts = text.split(/\s+/);
    const from = /^--from=(.+)$/.exec(parts[0] ?? '')?.[1];
    const sources = from === undefined ? parts.slice(0, -1) : parts.slice(1, -1);
    const target = parts.at(-1) ?? '';
    for (const source of sources) {
      const first = source.split('/')[0] ?? '';
      if (from === undefined && !this.#context.has(first)) {
        throw new Error(`${source} is not in the context: see .dockerignore`);
      }
      const origin = from === undefined ? this.#checkout : (this.#stages.get(from)?.root ?? '');
      const into = target.endsWith('/') ? join(target, basename(source)) : target;
      const path = join(this.#stage.root, resolve(this.#stage.workdir, into));
      mkdirSync(dirname(path), { recursive: true });
      if (from === undefined) cpSync(join(origin, source), path, { recursive: true });
      else link(join(origin, source), path);
    }
  }

  #do(text: string): void {
    const steps = text.split(' && ').filter((step) => !LEFT_OUT.test(step));
    const [first = ''] = steps;
    if (first.startsWith('npm ci')) {
      this.#installPackages(first);
      return;
    }
    if (steps.length === 0) return;
    const [program = '', ...args] = this.command(['sh', '-c', steps.join(' && ')]);
    execFileSync(program, args, { stdio: 'pipe' });
  }

  /** Those for production are installed in earnest, with this machine's npm and its cache. */
  #installPackages(command: string): void {
    const app = join(this.#stage.root, this.#stage.workdir);
    if (command.includes('--omit=dev')) {
      execFileSync('sh', ['-c', `${command} --prefer-offline`], { cwd: app, stdio: 'pipe' });
      return;
    }
    rmSync(join(app, 'node_modules'), { recursive: true });
    mkdirSync(join(app, 'node_modules'));
    this.#stage.hasDeveloperPackages = true;
  }
}

/** As copied, and sooner: a stage writes into no file of another one. */
function link(source: string, target: string): void {
  execFileSync('cp', ['--archive', '--link', '--force', source, target]);
}

function makeBase(root: string): void {
  for (const path of [...OWN_FOLDERS, 'etc']) mkdirSync(join(root, path), { recursive: true });
  writeFileSync(join(root, 'etc/passwd'), 'node:x:1000:1000::/home/node:/bin/sh\n');
  writeFileSync(join(root, 'etc/group'), 'node:x:1000:\n');
  writeFileSync(join(root, 'usr/local/bin/node'), '');
}
