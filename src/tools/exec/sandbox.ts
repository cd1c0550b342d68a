// CONTRACT of a sandbox: turns a command into one that runs the same confined. What it may see is
// decided before; starting, watching and ending it is left to run-confined.ts.

import type { Environment } from '../../kernel/config/environment.ts';
import type { ExecLimits } from './limits.ts';

export type Argv = readonly [string, ...string[]];

/** What a command may reach. All paths are absolute and real. */
export type Confinement = {
  /** Under the same path inside; undefined: no files of ours at all. */
  readonly workspace: string | undefined;
  readonly isWritable: boolean;
  /** Where it begins; also its HOME. */
  readonly cwd: string;
  readonly shields: Shields;
  /** Besides the system's own programs. */
  readonly extraReadOnly: readonly string[];
  /** Never seen, wherever they lie: the state of the gateway. */
  readonly forbidden: readonly string[];
  /** Holds the script of this run; readable. */
  readonly scriptFolder: string | undefined;
  /** Seen in place of what stands at the path: copies of what an owner allowed. */
  readonly replaced: readonly { readonly path: string; readonly by: string }[];
  readonly hasNetwork: boolean;
  /** Of what it writes outside of the workspace, bytes. */
  readonly scratchBytes: number;
};

/** Parts of the workspace that are kept from a command. */
export type Shields = {
  /** It may read them and not change them. */
  readonly readOnly: readonly string[];
  /** It must not see them. */
  readonly hidden: readonly HiddenPath[];
  /** In what is hidden: it may read them all the same. */
  readonly shown: readonly string[];
  /** Folders that it may change and not put others in place of. */
  readonly pinned: readonly string[];
};

export const NO_SHIELDS: Shields = { readOnly: [], hidden: [], shown: [], pinned: [] };

export type HiddenPath = { readonly path: string; readonly kind: 'file' | 'folder' };

export type ToLaunch = {
  readonly command: Argv;
  readonly confinement: Confinement;
  readonly limits: ExecLimits;
  /** Of the command. */
  readonly env: Environment;
};

export type Launch = {
  readonly argv: Argv;
  /** Of the program that is started. */
  readonly cwd: string;
  readonly env: Environment;
  /** Written to file descriptor 3, so that no list of processes shows it. */
  readonly arguments: string | undefined;
  /** Where the command runs elsewhere than below the program that is started. */
  readonly remote?: RemoteRun;
};

export type RemoteRun = {
  /** Ends it now, without a wait; also what is only about to begin. */
  end(): void;
  /** When nothing of it is left, or nobody can say. */
  gone(): Promise<void>;
};

export interface Sandbox {
  readonly kind: 'bubblewrap' | 'seatbelt' | 'container' | 'off';
  /** In words, for owners. */
  readonly about: string;
  /** Set where programs are not those of this machine: names for good what they come from. */
  readonly image?: string;
  /** Every process of a run ends with its first one, and with ours. */
  readonly endsWithParent: boolean;
  /** Where commands find the program that runs us. */
  readonly node: string;
  /** Where a file of the script folder is seen. */
  scriptPath(scriptFolder: string, name: string): string;
  /** Where a command may write that has no workspace. */
  readonly scratch: string;
  /** @throws ToolError where it cannot be confined so */
  launch(run: ToLaunch): Launch;
}
