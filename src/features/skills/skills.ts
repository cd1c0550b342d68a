// CONTRACT of the skills: what the agent can learn when it needs it. The workspace's come before
// those that are shipped; one that is not what was added is not offered.

import { NanobotError } from '../../kernel/message/errors.ts';

export type SkillState =
  | { readonly kind: 'ready' }
  /** What is not there: programs, environment variables, the system it is for. */
  | { readonly kind: 'lacking'; readonly missing: readonly string[] }
  /** It was added from elsewhere, and its SKILL.md is no longer what was looked at then. */
  | { readonly kind: 'changed' }
  | { readonly kind: 'broken'; readonly problem: string };

export type Skill = {
  readonly name: string;
  readonly description: string;
  readonly isAlways: boolean;
  readonly origin: 'workspace' | 'shipped';
  /** Where an added one came from. */
  readonly source?: string;
  readonly state: SkillState;
};

export type SkillFile = {
  /** Below the skill's folder. */
  readonly path: string;
  readonly text: string;
  /** The other files of the skill. */
  readonly others: readonly string[];
};

export interface Skills {
  /** By name. */
  list(): Promise<readonly Skill[]>;
  /**
   * SKILL.md without its front matter, or another file of the skill, as it stands.
   * @throws SkillError
   */
  read(name: string, file?: string): Promise<SkillFile>;
}

export type SkillProblem =
  | 'unknown'
  | 'not_ready'
  | 'changed'
  | 'bad_source'
  | 'refused'
  | 'exists';

/** What is wrong with a skill, in words for the model and for people. */
export class SkillError extends NanobotError {
  override readonly name = 'SkillError';
  readonly problem: SkillProblem;
  constructor(problem: SkillProblem, message: string, options: { readonly cause?: unknown } = {}) {
    super(`skill_${problem}`, message, options);
    this.problem = problem;
  }
}
