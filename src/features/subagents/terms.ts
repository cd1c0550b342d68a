// Determines the terms of a subagent: its profile, bounded by the configuration and by the parent's
// terms.

import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import type { Kernel } from '../../kernel/feature.ts';
import type { SessionKey } from '../../kernel/message/ids.ts';
import { declaredPaths, readDeclared } from '../../lib/files/declared-files.ts';
import { fileStamp } from '../../lib/files/files.ts';
import type { GuardedFiles } from '../../lib/files/guarded-files.ts';
import { defined, type ReadFile } from '../../lib/json/json.ts';
import { t } from '../../lib/texts.ts';
import type { Advice, SubagentKind } from './rules/calibration.ts';
import {
  narrowedTerms,
  type Profile,
  readProfile,
  SubagentError,
  type Terms,
} from './rules/subagent.ts';
import { PROFILES_FOLDER } from './settings.ts';

type SubagentTermsDeps = Pick<Kernel, 'live' | 'settings'> & {
  readonly profiles: ProfileFiles;
  /** Limits derived from earlier runs; undefined: too little data. `model`: as in the terms. */
  advice(kind: SubagentKind, profile?: string, model?: string): Promise<Advice | undefined>;
};

type AskedTerms = {
  /** Of the asking turn. */
  readonly session: SessionKey;
  readonly above: Terms | undefined;
  /** What it is for, where limits may be derived from earlier runs. */
  readonly kind?: SubagentKind;
};

export type SubagentTerms = ReturnType<typeof createSubagentTerms>;

export function createSubagentTerms(deps: SubagentTermsDeps) {
  const { live, profiles, settings } = deps;

  async function profileOf(name: string): Promise<Profile> {
    const found = await profiles.get(name);
    if (found?.kind === 'valid') return found.value;
    if (found !== undefined) {
      throw new SubagentError(t`The profile ${name} cannot be used: ${found.problem}.`);
    }
    const all = await profiles.list();
    const names = all.map((each) => (each.kind === 'valid' ? each.value : each).name);
    const there =
      names.length === 0 ? t`there are none; leave it out` : t`there are ${names.join(', ')}`;
    throw new SubagentError(t`There is no profile "${name}"; ${there}.`);
  }

  return {
    /** @throws SubagentError where the profile does not exist or is invalid */
    async of(name: string | undefined, { session, above, kind }: AskedTerms): Promise<Terms> {
      const profile = name === undefined ? undefined : await profileOf(name);
      const { minutes, tokens, model: usual } = live.config.agents.subagents;
      const { limits = {}, tools, readOnly = false, prompt = '' } = profile ?? {};
      const chosen = usual === '' ? (await settings.get(session)).model : usual;
      const model = profile?.model ?? chosen;
      const own: Terms = {
        ...{ readOnly, prompt },
        ...defined({ profile: name, tools, model, rounds: limits.rounds }),
        tokens: Math.min(limits.tokens ?? tokens, tokens),
        minutes: Math.min(limits.minutes ?? minutes, minutes),
      };
      const advice = kind === undefined ? undefined : await deps.advice(kind, name, model);
      return narrowedTerms(advice === undefined ? own : advised(own, advice, limits), above);
    },
    /** One line per profile. */
    async described(): Promise<readonly string[]> {
      const found = await profiles.list();
      if (found.length === 0) return ['- none'];
      return found.map((each) =>
        each.kind === 'valid'
          ? profileLine(each.value)
          : t`- ${each.name} cannot be used: ${each.problem}`,
      );
    },
  };
}

/** Limits of the profile are kept; advice only lowers the others. */
function advised(own: Terms, advice: Advice, limits: NonNullable<Profile['limits']>): Terms {
  const rounds = limits.rounds ?? advice.rounds;
  const tokens = limits.tokens === undefined ? Math.min(own.tokens, advice.tokens) : own.tokens;
  const isAdvised = limits.rounds === undefined ? { isAdvised: true as const } : {};
  return { ...own, rounds, tokens, depth: advice.depth, ...isAdvised };
}

const profileLine = ({ name, description }: Profile) => `- ${name}: ${description}`;

// Reads the profiles in the workspace. Links are not followed; an invalid file gives its problem.

type ProfileFiles = ReturnType<typeof createProfileFiles>;

export function createProfileFiles(files: GuardedFiles, workspace: () => string) {
  let known: { readonly stamps: string; readonly lines: string } | undefined;

  const paths = () => declaredPaths(files, workspace(), PROFILES_FOLDER);
  const read = (name: string, path: string) =>
    readDeclared(files, { root: workspace(), path, name }, readProfile);
  const list = async () =>
    Promise.all([...(await paths())].map(([name, path]) => read(name, path)));

  function stamps(): string {
    const folder = join(workspace(), PROFILES_FOLDER);
    return namesIn(folder)
      .map((name) => `${name} ${fileStamp(join(folder, name))}`)
      .join('\n');
  }

  return {
    /** By name. */
    list,
    /** One line per valid profile; the files are read again when one of them changed. */
    async lines(): Promise<string> {
      const now = stamps();
      if (now === '') return '';
      if (known?.stamps === now) return known.lines;
      const valid = (await list()).filter((each) => each.kind === 'valid');
      known = { stamps: now, lines: valid.map(({ value }) => profileLine(value)).join('\n') };
      return known.lines;
    },
    /** Undefined where no profile has this name. */
    async get(name: string): Promise<ReadFile<Profile> | undefined> {
      const path = (await paths()).get(name);
      return path === undefined ? undefined : read(name, path);
    },
  };
}

/** Synchronous, like file stamps: it runs at every turn. */
function namesIn(folder: string): readonly string[] {
  try {
    return readdirSync(folder).filter((name) => /\.ya?ml$/.test(name));
  } catch {
    return [];
  }
}
