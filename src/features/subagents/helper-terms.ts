// What a helper is held to: its profile, bounded by the configuration and by the helper above it.

import type { SessionKey } from '../../kernel/message/ids.ts';
import type { ProfileBook } from './profile-book.ts';
import type { Advice, HelperKind } from './rules/calibration.ts';
import type { Profile } from './rules/profile.ts';
import { narrowedTerms, SubagentError, type Terms } from './rules/subagent.ts';
import type { SubagentsConfig } from './settings.ts';

export type HelperTermsDeps = {
  readonly profiles: ProfileBook;
  settings(): SubagentsConfig;
  /** The model that was chosen for a conversation. */
  modelOf(session: SessionKey): Promise<string | undefined>;
  /** What helpers like it took before; undefined: too little is known. `model`: as in its terms. */
  advice(of: {
    readonly kind: HelperKind;
    readonly profile: string | undefined;
    readonly model: string | undefined;
  }): Promise<Advice | undefined>;
};

export type AskedTerms = {
  /** Of whoever asks. */
  readonly session: SessionKey;
  readonly above: Terms | undefined;
  /** What it is for, where its limits may go by experience. */
  readonly kind?: HelperKind;
};

export type HelperTerms = {
  /** @throws SubagentError where there is no such profile, or none that is right */
  of(profile: string | undefined, asked: AskedTerms): Promise<Terms>;
  /** A line for each profile. */
  described(): Promise<readonly string[]>;
};

export function createHelperTerms(deps: HelperTermsDeps): HelperTerms {
  const { profiles, settings, modelOf } = deps;

  async function profileOf(name: string): Promise<Profile> {
    const found = await profiles.get(name);
    if (found?.kind === 'valid') return found.profile;
    if (found !== undefined) {
      throw new SubagentError(`The profile ${name} cannot be used: ${found.problem}.`);
    }
    const names = (await profiles.list()).map(
      (each) => (each.kind === 'valid' ? each.profile : each).name,
    );
    const there =
      names.length === 0 ? 'there are none; leave it out' : `there are ${names.join(', ')}`;
    throw new SubagentError(`There is no profile "${name}"; ${there}.`);
  }

  return {
    async of(name, { session, above, kind }) {
      const profile = name === undefined ? undefined : await profileOf(name);
      const { minutes, tokens, model: usual } = settings();
      const { limits = {}, tools, readOnly = false, prompt = '' } = profile ?? {};
      const model = profile?.model ?? (usual === '' ? await modelOf(session) : usual);
      const own: Terms = {
        ...{ readOnly, prompt },
        ...(name === undefined ? {} : { profile: name }),
        ...(tools === undefined ? {} : { tools }),
        ...(model === undefined ? {} : { model }),
        ...(limits.rounds === undefined ? {} : { rounds: limits.rounds }),
        tokens: Math.min(limits.tokens ?? tokens, tokens),
        minutes: Math.min(limits.minutes ?? minutes, minutes),
      };
      const advice =
        kind === undefined ? undefined : await deps.advice({ kind, profile: name, model });
      return narrowedTerms(advice === undefined ? own : advised(own, advice, limits), above);
    },
    async described() {
      const found = await profiles.list();
      if (found.length === 0) return ['- none'];
      return found.map((each) =>
        each.kind === 'valid'
          ? `- ${each.profile.name}: ${each.profile.description}`
          : `- ${each.name} cannot be used: ${each.problem}`,
      );
    },
  };
}

/** What the profile lays down stays; of the rest nothing becomes more than it was. */
function advised(own: Terms, advice: Advice, limits: NonNullable<Profile['limits']>): Terms {
  const rounds = limits.rounds ?? advice.rounds;
  const tokens = limits.tokens === undefined ? Math.min(own.tokens, advice.tokens) : own.tokens;
  const isAdvised = limits.rounds === undefined ? { isAdvised: true as const } : {};
  return { ...own, rounds, tokens, depth: advice.depth, ...isAdvised };
}
