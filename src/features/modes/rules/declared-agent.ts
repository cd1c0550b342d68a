// Validates the declaration of a specialist (config/agents/*.yaml). agent-files.ts reads the files.

import { z } from 'zod';
import { mayBeTool } from '../../../kernel/config/limits.ts';
import { broken, type ReadFile, valueProblems } from '../../../lib/json/json.ts';
import { t } from '../../../lib/texts.ts';
import { SERVICES } from '../settings.ts';

export const AGENTS_FOLDER = 'agents';
export const PROMPTS_FOLDER = 'prompts';
/** The supervisor gives this instead of a name to finish. */
export const FINISH = 'FINISH';

export type Service = (typeof SERVICES)[number];

const MAX_TOOLS = 100;

const whole = (least: number, most: number) => z.int().min(least).max(most);
const words = (most: number) => z.string().trim().min(1).max(most);

const agentSchema = z.strictObject({
  enabled: z.boolean().default(true),
  description: words(500),
  whenNot: words(500).optional(),
  model: words(200).default('main'),
  temperature: z.number().min(0).max(2).default(0.3),
  tools: z.array(z.string().refine(mayBeTool)).max(MAX_TOOLS).default([]),
  output: z.enum(['verbatim', 'material']).default('verbatim'),
  prompt: z
    .string()
    .regex(/^(?!.*\.\.)[A-Za-z0-9][\w./-]*\.(?:md|txt)$/)
    .max(200)
    .optional(),
  limits: z
    .strictObject({
      rounds: whole(1, 50).default(6),
      tokens: whole(1000, 10_000_000).default(100_000),
      seconds: whole(5, 3600).default(180),
      answerTokens: whole(64, 32_000).default(2048),
    })
    .prefault({}),
});

/** The contents of the file. */
type AgentFile = Readonly<z.infer<typeof agentSchema>> & {
  readonly name: string;
  /** File name in the folder of prompts. */
  readonly prompt: string;
};

/** The declaration with its prompt as `instructions`. */
export type DeclaredAgent = Omit<AgentFile, 'prompt' | 'enabled'> & {
  readonly instructions: string;
};

const NAME = /^[a-z][a-z0-9]*(?:-[a-z0-9]+)*$/;
const FIELDS = Object.keys(agentSchema.shape);
const NUMBERS = t`write a whole number`;
const REMEDIES: Readonly<Record<string, string>> = {
  enabled: t`write true or false`,
  description: t`say in a sentence what it is for and when it is asked, at most 500 characters`,
  whenNot: t`say in a sentence when it is not asked, at most 500 characters, or leave it out`,
  model: 'write main, fast, or a name as /model takes it',
  temperature: t`write a number from 0 to 2`,
  tools: t`list names of tools, like [read_file, web_fetch], those of tool servers as mcp_server_tool; [] for none`,
  output: t`write verbatim (reaches the person to the letter) or material (for the answer)`,
  prompt: t`write the path of a .md or .txt file in ${PROMPTS_FOLDER}/, like guardian/system.md`,
  'limits.rounds': t`${NUMBERS} from 1 to 50`,
  'limits.tokens': t`${NUMBERS} from 1000 to 10000000`,
  'limits.seconds': t`${NUMBERS} from 5 to 3600`,
  'limits.answerTokens': t`${NUMBERS} from 64 to 32000`,
  limits: t`it may hold rounds, tokens, seconds and answerTokens`,
};

/** `values`: the parsed YAML; `name`: the file name without its ending. */
export function readAgentFile(values: unknown, name: string): ReadFile<AgentFile> {
  if (!NAME.test(name) || name.length > 40) {
    return broken(name, t`the name of the file: use small letters, digits and single hyphens`);
  }
  if ((SERVICES as readonly string[]).includes(name)) {
    return broken(name, t`the name of the file: ${name} is a service; choose another`);
  }
  const parsed = agentSchema.safeParse(values);
  if (!parsed.success) {
    return broken(name, ...valueProblems(parsed.error, values, REMEDIES, FIELDS));
  }
  const { prompt = `${name}/system.md`, ...rest } = parsed.data;
  return { kind: 'valid', value: { ...rest, prompt, name } };
}
