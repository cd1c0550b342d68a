// macOS: sandbox-exec with a profile. It has no process table of its own: what a program detaches from
// its group is confined as well, but not ended with it.

import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { withLimits } from './limits.ts';
import type { Confinement, Sandbox } from './sandbox.ts';

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
