// A profile of helpers, as it stands in a YAML file of the workspace: checked here, read elsewhere.

import { z } from 'zod';
import { valueProblem } from '../../../lib/json/value-problem.ts';

/** Below the workspace; writing there is a rule. */
export const PROFILES_FOLDER = 'profiles';
export const PROFILE_ENDING = '.yaml';

const MAX_PROMPT_CHARS = 20_000;

const whole = (most: number) => z.int().min(1).max(most);

const profileSchema = z.strictObject({
  name: z.string().optional(),
  description: z.string().trim().min(1).max(500),
  tools: z.array(z.string().trim().min(1).max(64)).min(1).max(100).optional(),
  model: z.string().trim().min(1).max(200).optional(),
  readOnly: z.boolean().default(false),
  limits: z
    .strictObject({
      rounds: whole(1000).optional(),
      minutes: whole(1440).optional(),
      tokens: z.int().min(1000).max(100_000_000).optional(),
    })
    .default({}),
  prompt: z.string().trim().min(1).max(MAX_PROMPT_CHARS),
});

export type Profile = Readonly<z.infer<typeof profileSchema>> & { readonly name: string };

export type ReadProfile =
  | { readonly kind: 'valid'; readonly profile: Profile }
  /** `problem` names field, value and remedy. */
  | { readonly kind: 'broken'; readonly name: string; readonly problem: string };

const NAME = /^[a-z0-9]+(?:-[a-z0-9]+)*$/;
const FIELDS = Object.keys(profileSchema.shape);
const REMEDIES: Readonly<Record<string, string>> = {
  description: 'say in a sentence what the helper is for',
  tools: 'list names of tools, like [read_file, web_fetch], or leave it out for all',
  model: 'write fast, default, or a name as /model takes it',
  readOnly: 'write true or false',
  'limits.rounds': 'write a whole number from 1 to 1000',
  'limits.minutes': 'write a whole number from 1 to 1440',
  'limits.tokens': 'write a whole number from 1000 to 100000000',
  limits: 'it may hold rounds, minutes and tokens',
  prompt: `write what every helper of this kind is told, at most ${MAX_PROMPT_CHARS} characters`,
};

export const isProfileName = (name: string) => NAME.test(name) && name.length <= 60;

/** `values`: what the YAML says; `name`: that of the file without its ending. */
export function readProfile(values: unknown, name: string): ReadProfile {
  const broken = (problem: string) => ({ kind: 'broken', name, problem }) as const;
  if (!isProfileName(name)) {
    return broken('the name of the file: use small letters, digits and single hyphens');
  }
  const parsed = profileSchema.safeParse(values);
  if (parsed.success) return { kind: 'valid', profile: { ...parsed.data, name } };
  return broken(valueProblem(parsed.error, values, REMEDIES, FIELDS));
}
