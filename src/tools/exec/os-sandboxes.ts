// The sandboxes of the operating systems: bubblewrap namespaces on Linux, sandbox-exec with a
// profile on macOS. The latter has no process table of its own: a detached program stays confined,
// but is not ended.

import { existsSync, lstatSync, readlinkSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import {
  type Argv,
  type Confinement,
  isWithin,
  type Launch,
  type Sandbox,
  type ToLaunch,
  withLimits,
} from './sandbox.ts';

/** Options listed by its `--help`; older versions lack some. */
export type BubblewrapFeatures = {
  readonly canSizeScratch: boolean;
  readonly canForbidUserNamespaces: boolean;
};

const NODE = '/nanobot/bin/node';
const SCRIPTS = '/nanobot/script';
const SCRATCH = '/tmp';
const SHOWN = ['/usr'];
/** Not the gateway's own id: no program sees itself as root. */
const INSIDE_ID = '1000';
const SYSTEM_FOLDERS = ['/bin', '/sbin', '/lib', '/lib32', '/lib64', '/libx32'];
/** What programs need to start, to know the time and to verify a certificate. */
const ETC = [
  ...['ld.so.cache', 'ld.so.conf', 'ld.so.conf.d', 'alternatives', 'localtime', 'timezone'],
  ...['nsswitch.conf', 'mime.types', 'fonts', 'ssl/certs', 'ssl/openssl.cnf', 'ca-certificates'],
  ...['pki/tls/certs', 'pki/ca-trust', 'magic', 'java-17-openjdk', 'java-21-openjdk'],
];
const ETC_OF_NETWORK = ['resolv.conf', 'hosts', 'protocols', 'services'];

export function createBubblewrap(features: BubblewrapFeatures, nodePath: string): Sandbox {
  return {
    kind: 'bubblewrap',
    about: 'bubblewrap',
    endsWithParent: true,
    node: NODE,
    scratch: SCRATCH,
    scriptPath: (_folder, name) => `${SCRIPTS}/${name}`,
    launch: ({ command, confinement, limits, env }: ToLaunch): Launch => ({
      argv: ['bwrap', '--args', '3', '--', ...withLimits(command, limits, true)],
      cwd: '/',
      env,
      arguments: [
        ...namespaces(features, confinement),
        ...system(confinement, nodePath),
        ...scratch(features, confinement),
        ...ours(confinement),
        // The user that is root outside could change kernel settings.
        ...['--remount-ro', '/proc', '--remount-ro', '/', '--chdir', confinement.cwd],
      ]
        .map((each) => `${each}\0`)
        .join(''),
    }),
  };
}

/** Like a run that sees nothing: tests whether the system permits it. */
export function trialArgv(features: BubblewrapFeatures): Argv {
  const options = namespaces(features, { hasNetwork: false });
  const mounts = ['--ro-bind', '/', '/', '--proc', '/proc', '--dev', '/dev'];
  return ['bwrap', ...options, ...mounts, '--', '/bin/sh', '-c', 'exit 0'];
}

function namespaces(
  { canForbidUserNamespaces }: BubblewrapFeatures,
  { hasNetwork }: Pick<Confinement, 'hasNetwork'>,
): readonly string[] {
  return [
    ...['--unshare-user', '--unshare-pid', '--unshare-ipc', '--unshare-uts'],
    '--unshare-cgroup-try',
    ...(hasNetwork ? [] : ['--unshare-net']),
    ...(canForbidUserNamespaces ? ['--disable-userns'] : []),
    ...['--die-with-parent', '--new-session', '--cap-drop', 'ALL', '--hostname', 'sandbox'],
    ...['--uid', INSIDE_ID, '--gid', INSIDE_ID],
  ];
}

function system({ hasNetwork, extraReadOnly }: Confinement, nodePath: string): readonly string[] {
  const etc = [...ETC, ...(hasNetwork ? ETC_OF_NETWORK : [])].map((name) => `/etc/${name}`);
  return [
    ...bind('--ro-bind', '/usr'),
    ...SYSTEM_FOLDERS.flatMap(systemFolder),
    ...etc.flatMap((path) => ['--ro-bind-try', path, path]),
    ...['--ro-bind', nodePath, NODE],
    ...extraReadOnly.flatMap((path) => ['--ro-bind-try', path, path]),
    ...['--proc', '/proc', '--dev', '/dev'],
  ];
}

/** On most systems a link into /usr. */
function systemFolder(path: string): readonly string[] {
  if (!existsSync(path)) return [];
  return lstatSync(path).isSymbolicLink()
    ? ['--symlink', readlinkSync(path), path]
    : bind('--ro-bind', path);
}

function scratch(
  { canSizeScratch }: BubblewrapFeatures,
  { scratchBytes }: Confinement,
): readonly string[] {
  const size = canSizeScratch ? ['--size', `${scratchBytes}`] : [];
  // The rest of /dev is in memory too.
  return [
    ...[...size, '--tmpfs', '/dev/shm', '--remount-ro', '/dev'],
    ...[...size, '--tmpfs', SCRATCH],
  ];
}

function ours(confinement: Confinement): readonly string[] {
  const { workspace, forbidden, scriptFolder, extraReadOnly } = confinement;
  const outer = extraReadOnly.filter(
    (root) => workspace === undefined || !isWithin(root, workspace),
  );
  // Parents of the workspace are masked before it is mounted, paths inside it afterwards.
  const before = forbidden.filter((path) =>
    [...SHOWN, ...outer].some((root) => isWithin(path, root)),
  );
  const inside = forbidden.filter((path) => workspace !== undefined && isWithin(path, workspace));
  return [
    ...before.flatMap((path) => ['--tmpfs', path]),
    ...(workspace === undefined ? [] : files(workspace, confinement)),
    ...inside.flatMap((path) => ['--tmpfs', path]),
    ...(scriptFolder === undefined ? [] : ['--ro-bind', scriptFolder, SCRIPTS]),
    ...[...before, ...inside].flatMap((path) => ['--remount-ro', path]),
  ];
}

function files(
  workspace: string,
  { shields, replaced, isWritable }: Confinement,
): readonly string[] {
  const { readOnly, hidden, shown, pinned } = shields;
  const folders = hidden.filter(({ kind }) => kind === 'folder').map(({ path }) => path);
  const single = hidden.filter(({ kind }) => kind === 'file').map(({ path }) => path);
  return [
    ...bind(isWritable ? '--bind' : '--ro-bind', workspace),
    ...(isWritable ? pinned : []).flatMap((path) => bind('--bind', path)),
    ...readOnly.flatMap((path) => bind('--ro-bind', path)),
    ...folders.flatMap((path) => ['--tmpfs', path]),
    ...single.flatMap((path) => ['--ro-bind', '/dev/null', path]),
    ...shown.flatMap((path) => bind('--ro-bind', path)),
    ...folders.flatMap((path) => ['--remount-ro', path]),
    ...replaced.flatMap(({ path, by }) => ['--ro-bind', by, path]),
  ];
}

const bind = (kind: string, path: string) => [kind, path, path];

// macOS: sandbox-exec with a profile. It has no process table of its own: a program that leaves its
// group stays confined, but is not ended with it.

/** What programs need to start. */
const SYSTEM = [
  ...['/bin', '/sbin', '/usr', '/System', '/Library/Apple', '/Library/Frameworks', '/dev'],
  ...['/private/etc/ssl', '/private/etc/localtime', '/private/var/db/timezone', '/opt/homebrew'],
  ...['/private/var/select', '/private/var/db/dyld', '/Library/Developer/CommandLineTools'],
];
const DEVICES = ['/dev/null', '/dev/zero', '/dev/random', '/dev/urandom', '/dev/dtracehelper'];

export function createSeatbelt(nodePath: string): Sandbox {
  return {
    kind: 'seatbelt',
    about: 'sandbox-exec',
    endsWithParent: false,
    node: nodePath,
    scratch: tmpdir(),
    scriptPath: (folder, name) => join(folder, name),
    launch({ command, confinement, limits, env }) {
      const profile = seatbeltProfile(confinement, nodePath);
      const limited = withLimits(command, limits, false);
      const argv = ['/usr/bin/sandbox-exec', '-p', profile, ...limited] as const;
      return { argv, cwd: confinement.cwd, env, arguments: undefined };
    },
  };
}

/** In the language of sandbox profiles; of two rules for a path the later one counts. */
export function seatbeltProfile(confinement: Confinement, nodePath: string): string {
  const { workspace, shields, extraReadOnly, forbidden, scriptFolder, isWritable } = confinement;
  const readable = [...SYSTEM, ...extraReadOnly, ...(scriptFolder ? [scriptFolder] : [])];
  const lines = [
    '(version 1)',
    '(deny default)',
    '(allow process-fork)',
    '(allow process-exec)',
    '(allow signal (target same-sandbox))',
    '(allow sysctl-read)',
    '(allow file-read-metadata)',
    '(allow file-read* (literal "/"))',
    `(allow file-read* ${readable.map(subpath).join(' ')} (literal ${quoted(nodePath)}))`,
    `(allow file-write* ${DEVICES.map((path) => `(literal ${quoted(path)})`).join(' ')})`,
    ...forbidden.map((path) => `(deny file* ${subpath(path)})`),
    `(allow ${isWritable ? 'file*' : 'file-read*'} ${subpath(workspace ?? confinement.cwd)})`,
    ...forbidden
      .filter((path) => workspace !== undefined && path.startsWith(`${workspace}/`))
      .map((path) => `(deny file* ${subpath(path)})`),
    ...shields.readOnly.map((path) => `(deny file-write* ${subpath(path)})`),
    ...shields.hidden.map(({ path }) => `(deny file* ${subpath(path)})`),
    ...shields.shown.map((path) => `(allow file-read* ${subpath(path)})`),
    ...shields.pinned.map((path) => `(deny file-write-unlink (literal ${quoted(path)}))`),
    ...(confinement.hasNetwork ? ['(allow network*)', '(allow mach-lookup)'] : ['(deny network*)']),
  ];
  return lines.join('\n');
}

const subpath = (path: string) => `(subpath ${quoted(path)})`;
const quoted = (text: string) => `"${text.replace(/["\\]/g, '\\$&')}"`;
