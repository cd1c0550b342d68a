// CONTRACT of the skills: what the agent can learn when it needs it. The workspace's come before
// those that are shipped; one that is not what was added is not offered.

import { z } from 'zod';
import { NanobotError, ToolError } from '../../kernel/message/errors.ts';
import { readDescription, type Tool } from '../../tools/tool.ts';

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

// Tool: reads how something is done, from a skill that stands in the prompt by its name.

const ITSELF = /^(?:\.\/)*(?:skill\.md)?$/i;

const input = z
  .object({
    name: z.string().min(1).max(64).describe('The skill, by its name in the list of skills.'),
    file: z
      .string()
      .max(200)
      .optional()
      .describe('Another file of the skill, by its path there; left out: the skill itself.'),
  })
  // One way to say it, so that what was read is seen to be read again.
  .transform(({ name, file }) => ({
    name,
    ...(file === undefined || ITSELF.test(file) ? {} : { file }),
  }));
type Input = z.infer<typeof input>;

export function createReadSkill(skills: Pick<Skills, 'read'>): Tool<Input> {
  return {
    name: 'read_skill',
    ...readDescription('read_skill'),
    access: 'read',
    input,
    describe: ({ name, file }) => (file === undefined ? name : `${name}/${file}`),
    async run({ name, file }) {
      const { text, others } = await skills.read(name, file).catch((error: unknown) => {
        if (!(error instanceof SkillError)) throw error;
        throw new ToolError(KINDS[error.problem], error.message, { cause: error });
      });
      if (others.length === 0 || file !== undefined) return text;
      return `${text}\n\n[other files of this skill, read with read_skill and file: ${others.join(', ')}]`;
    },
  };
}

const KINDS: Readonly<Record<SkillProblem, ToolError['kind']>> = {
  unknown: 'not_found',
  not_ready: 'execution',
  changed: 'blocked',
  bad_source: 'execution',
  refused: 'blocked',
  exists: 'execution',
};
