// CONTRACT between the tools that run programs and what runs them: what is asked for, and what an owner
// has settled beforehand.

import type { Environment } from '../../kernel/config/environment.ts';
import type { FoundSandbox } from './find-sandbox.ts';
import type { ExecLimits } from './limits.ts';
import type { Argv } from './sandbox.ts';
import type { Script } from './scripts.ts';

export type ExecSettings = {
  readonly isEnabled: boolean;
  readonly limits: ExecLimits;
  readonly hasNetwork: boolean;
  /** Folders programs may read besides the workspace and the system's. */
  readonly readOnly: readonly string[];
  /** Names of environment variables they get. */
  readonly passedOn: readonly string[];
};

export type ExecDeps = {
  /** What is known of it by now. */
  sandbox(): FoundSandbox;
  settings(): ExecSettings;
  /** Absolute real paths that no program sees. */
  readonly forbidden: readonly string[];
  readonly env: Environment;
  readonly nodePath: string;
  /** Masks the values of configured secrets. */
  redact(text: string): string;
};

export type ExecRequest = {
  readonly work: { readonly kind: 'argv'; readonly argv: Argv } | Script;
  /** Relative to the workspace; undefined: it gets no files. */
  readonly folder: string | undefined;
  readonly timeoutMs: number;
};
