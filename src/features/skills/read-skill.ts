// Tool: reads how something is done, from a skill that stands in the prompt by its name.

import { z } from 'zod';
import { ToolError } from '../../kernel/message/errors.ts';
import type { Tool } from '../../tools/tool.ts';
import { readDescription } from '../../tools/tool.ts';
import { SkillError, type SkillProblem, type Skills } from './skills.ts';

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
