// What a helper is held to: its profile, bounded by the configuration and by the helper above it.

import type { SubagentsConfig } from '../core/config-subagents.ts';
import type { SessionKey } from '../core/ids.ts';
import type { Profile } from '../core/profile.ts';
import { narrowedTerms, SubagentError, type Terms } from '../core/subagent.ts';
import type { ProfileBook } from './profile-book.ts';

export type HelperTermsDeps = {
  readonly profiles: ProfileBook;
  settings(): SubagentsConfig;
  /** The model that was chosen for a conversation. */
  modelOf(session: SessionKey): Promise<string | undefined>;
};

export type HelperTerms = {
  /** `session`: of whoever asks. @throws SubagentError where there is no such profile, or none that is right */
  of(profile: string | undefined, session: SessionKey, above: Terms | undefined): Promise<Terms>;
  /** A line for each profile. */
  described(): Promise<readonly string[]>;
};

export function createHelperTerms({ profiles, settings, modelOf }: HelperTermsDeps): HelperTerms {
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
    async of(name, session, above) {
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
      return narrowedTerms(own, above);
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
