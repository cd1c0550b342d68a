// The environment of a program: what it needs to run, and what an owner lists; never what nanobot was
// started with (case X07).

import { dirname } from 'node:path';
import type { Environment } from '../../kernel/config/environment.ts';
import { PROGRAM_FOLDERS } from './programs.ts';
import { isLoaderVariable } from './rules/loader-variables.ts';
import type { Sandbox } from './sandbox.ts';

export type EnvironmentParts = {
  readonly env: Environment;
  /** Names of `env` that an owner lists. */
  readonly passedOn: readonly string[];
  readonly home: string;
  readonly sandbox: Sandbox;
  /** Masks the values of configured secrets. */
  readonly redact: (text: string) => string;
};

export function programEnvironment(parts: EnvironmentParts): Environment {
  const { env, passedOn, home, sandbox, redact } = parts;
  const listed = passedOn.flatMap((name): readonly (readonly [string, string])[] => {
    const value = env[name];
    const isFit = value !== undefined && !isLoaderVariable(name) && redact(value) === value;
    return isFit ? [[name, value]] : [];
  });
  return {
    LANG: 'C.UTF-8',
    TERM: 'dumb',
    NO_COLOR: '1',
    ...Object.fromEntries(listed),
    // `node` is the program that runs us, as everywhere else; an image has its own, and its own PATH.
    ...(sandbox.image === undefined
      ? { PATH: [dirname(sandbox.node), ...PROGRAM_FOLDERS].join(':') }
      : {}),
    HOME: home,
    TMPDIR: sandbox.scratch,
  };
}
