// What the operating system refused, in words for the person at the terminal, with what to do.

import type { Home } from '../app/home.ts';

const SAY: Readonly<Record<string, (path: string) => string>> = {
  EACCES: forbidden,
  EPERM: forbidden,
  EROFS: (path) => `${path} lies on a disk that can only be read. ${ELSEWHERE}`,
  ENOTDIR: (path) => `${path} cannot be made: part of its path is a file. ${ELSEWHERE}`,
  EEXIST: (path) => `${path} is a file, and a folder is needed there. ${ELSEWHERE}`,
  EISDIR: (path) => `${path} is a folder, and a file is needed there. Move it away.`,
};
const ELSEWHERE = 'Choose another home with NANOBOT_HOME.';
const FULL = ['ENOSPC', 'EDQUOT'];

/** Undefined where the error is none of the file system's, or one that only its own words describe. */
export function explainSystemError(error: unknown, home: Home): string | undefined {
  if (!(error instanceof Error) || !('code' in error)) return undefined;
  const code = String(error.code);
  if (FULL.includes(code)) {
    return `no room is left on the disk of ${home.root}. Make room and try again; what was kept is still there.`;
  }
  const path = 'path' in error && typeof error.path === 'string' ? error.path : undefined;
  return path === undefined ? undefined : SAY[code]?.(path);
}

function forbidden(path: string): string {
  return `${path} may not be read or written by this user. Give it to them (chown, chmod), or choose another home with NANOBOT_HOME.`;
}
