// What is kept of a helper: a turn in a conversation of its own, or a series of such turns, that a turn
// of the agent started. Pure rules: starting, storing and telling are done elsewhere.

import { z } from 'zod';
import { NO_RIGHTS, narrowed, type Rights, UNRESTRICTED } from '../../../kernel/access/rights.ts';
import { NanobotError } from '../../../kernel/message/errors.ts';
import {
  channelName,
  chatId,
  DEFAULT_ACCOUNT,
  type SessionKey,
} from '../../../kernel/message/ids.ts';
import { type ChatRef, type SystemSender, sessionKeyOf } from '../../../kernel/message/message.ts';
import type { TurnPerson } from '../../../kernel/message/untrusted.ts';
import { valueProblem } from '../../../lib/json/json.ts';
import { headOf } from '../../../lib/text/cut.ts';

/** What was asked of helpers cannot be had; `message` says what to do instead. */
export class SubagentError extends NanobotError {
  override readonly name = 'SubagentError';
  constructor(message: string) {
    super('subagent_refused', message, { userText: message });
  }
}

/** When a loop is over: checked by us, never guessed from words. */
export type Until =
  /** A line of the answer is exactly this. */
  | { readonly kind: 'line'; readonly text: string }
  /** The JSON object in the answer holds this value in this field. */
  | {
      readonly kind: 'json';
      readonly field: string;
      readonly equals: string | number | boolean;
    };

export type Step = {
  readonly prompt: string;
  readonly profile?: string;
  /** By how many votes one answer has to lead; 0: it is asked once. */
  readonly aheadBy: number;
};

export type Plan =
  | {
      readonly kind: 'task';
      readonly task: string;
      readonly profile?: string;
      /** It says one answer of several to the same question, and has no tools. */
      readonly isVote?: true;
    }
  | { readonly kind: 'pipeline'; readonly steps: readonly [Step, ...Step[]] }
  | {
      readonly kind: 'loop';
      readonly task: string;
      readonly profile?: string;
      readonly until: Until;
      readonly rounds: number;
    };

export type SubagentRequest = {
  readonly plan: Plan;
  readonly label?: string;
  /** A name by which a pipeline or loop is taken up again. */
  readonly id?: string;
};

/** Whose turn started it, and what was allowed there at that moment. */
export type SubagentParent = {
  readonly session: SessionKey;
  readonly chat: ChatRef;
  readonly rights: Rights;
  readonly isTainted: boolean;
  readonly person: TurnPerson;
  /** Who pays: the chat, and the person in it. */
  readonly payingChat: ChatRef;
  readonly payer: Pick<SystemSender, 'paidBy' | 'limits'>;
};

/** What a helper is held to; of its profile and its parent the less. */
export type Terms = {
  readonly profile?: string;
  /** Names of the only tools it gets; left out: all it may use. */
  readonly tools?: readonly string[];
  readonly readOnly: boolean;
  readonly model?: string;
  readonly prompt: string;
  readonly rounds?: number;
  readonly tokens: number;
  readonly minutes: number;
  /** SpawnSubagents start helpers down to this depth; left out: as configured. */
  readonly depth?: number;
  /** Limits of it go by what helpers like it took before. */
  readonly isAdvised?: true;
};

/** `undecided`: a vote that nobody won. */
type SubagentState = 'running' | 'done' | 'failed' | 'undecided' | 'cancelled';

/** The answer of one helper of a series; `part`: which step or round it is of, `vote`: which voter. */
export type PartAnswer = { readonly part: number; readonly text: string; readonly vote?: number };

export type SubagentRun = {
  readonly id: string;
  /** How whoever asked called it, to take it up again. */
  readonly name?: string;
  readonly label: string;
  readonly plan: Plan;
  readonly parent: SubagentParent;
  /** 1: started by a turn of a person. */
  readonly depth: number;
  /** The pipeline or loop it belongs to, which hears of its end instead of the parent. */
  readonly series?: string;
  readonly terms: Terms;
  /** Tries of a series; helpers that failed are asked anew in the next one. */
  readonly attempt: number;
  /** Of a series. */
  readonly answers: readonly PartAnswer[];
  /** Epoch milliseconds, as everywhere here. */
  readonly startedAt: number;
  readonly endedAt?: number;
  readonly state: SubagentState;
  /** Its answer, or why there is none. */
  readonly result?: string;
  /** The result may hold words of others. */
  readonly isForeign?: true;
  /** Whether the parent still has to be told. */
  readonly telling: 'due' | 'over';
};

/** For the model. Where it holds words of others, they are wrapped. */
export type SubagentAnswer = { readonly text: string; readonly isForeign: boolean };

export const SUBAGENT_CHANNEL = channelName('subagent');

export const subagentChat = (id: string): ChatRef => ({
  channel: SUBAGENT_CHANNEL,
  account: DEFAULT_ACCOUNT,
  chat: chatId(id),
});

export const subagentSession = (id: string): SessionKey => sessionKeyOf(subagentChat(id));

/** A helper speaks to nobody, makes no rules and no jobs: whoever asked does that. */
const SUBAGENT_RIGHTS: Rights = {
  ...UNRESTRICTED,
  ...{ say: 'never', send: 'never', rules: 'never', schedule: 'never', own: ['write'] },
};
const READ_ONLY_RIGHTS: Rights = { ...NO_RIGHTS, read: 'free', web: 'free', trustsFiles: true };

/** Never more than the turn that asked might do at that moment. */
export function subagentRights({ parent, terms }: Pick<SubagentRun, 'parent' | 'terms'>): Rights {
  const rights = narrowed(parent.rights, SUBAGENT_RIGHTS);
  return terms.readOnly ? narrowed(rights, READ_ONLY_RIGHTS) : rights;
}

/** The narrower of what its profile and its parent's terms allow. */
export function narrowedTerms(own: Terms, above: Terms | undefined): Terms {
  if (above === undefined) return own;
  const tools =
    own.tools === undefined || above.tools === undefined
      ? (own.tools ?? above.tools)
      : own.tools.filter((name) => above.tools?.includes(name));
  return {
    ...own,
    ...(tools === undefined ? {} : { tools }),
    readOnly: own.readOnly || above.readOnly,
    tokens: Math.min(own.tokens, above.tokens),
    minutes: Math.min(own.minutes, above.minutes),
  };
}

const SECOND_MS = 1000;
const MINUTE_MS = 60 * SECOND_MS;
const MAX_LABEL_CHARS = 60;

/** How long its turn may still go on, milliseconds: a restart gives it no more time. */
export const leftMs = ({ startedAt, terms }: SubagentRun, now: number) =>
  Math.max(1, startedAt + terms.minutes * MINUTE_MS - now);

/** One line without signs of markup. */
export function subagentLabel(typed: string | undefined, plan: Plan): string {
  const text = typed ?? (plan.kind === 'pipeline' ? plan.steps[0].prompt : plan.task);
  const plain = text.replace(/[^\p{L}\p{M}\p{N} .,:;!?'()/+-]+/gu, ' ').replace(/\s+/g, ' ');
  return headOf(plain.trim(), MAX_LABEL_CHARS).trim() || plan.kind;
}

/** A line for people and for the model; no two looks at a running one give the same. */
export function subagentLine(run: SubagentRun, now: number): string {
  const { id, label, plan, terms, state, startedAt, endedAt, answers } = run;
  const limit = terms.isAdvised === true ? `, ${terms.rounds} rounds by experience` : '';
  const profile = `${terms.profile === undefined ? '' : `, ${terms.profile}`}${limit}`;
  const parts = plan.kind === 'task' ? '' : `, ${answers.length} answers so far`;
  const seconds = Math.round(Math.max(0, (endedAt ?? now) - startedAt) / SECOND_MS);
  const span = seconds < 120 ? `${seconds} s` : `${Math.round(seconds / 60)} min`;
  const how = state === 'running' ? `running for ${span}${parts}` : `${state} after ${span}`;
  return `${id} ${label} (${plan.kind}${profile}): ${how}`;
}

/** What the helper is told. */
export function taskText({ label, plan, terms }: SubagentRun): string {
  const task = plan.kind === 'task' ? plan.task : '';
  return [
    `[Task for a subagent, "${label}". Nobody reads this conversation and nobody can be asked: what you ` +
      'answer last is handed to the one who gave the task. Say what you found, what you did, and what you ' +
      'could not find or do.]',
    ...(terms.prompt === '' ? [] : [terms.prompt]),
    `Task:\n${task}`,
  ].join('\n\n');
}

/** What stands before the result where the parent is told of it. */
export function endText(run: SubagentRun, now: number): string {
  return (
    `[A subagent you started has ended: ${subagentLine(run, now)}. Only you see its result below. Tell the ` +
    'person what they need of it, or go on with what it was for.]'
  );
}

// What a helper at work says that whoever asked has to know before it is done: a line of its own that
// it marks itself. Nothing is guessed from words like "error" or "found".

/** Of one helper; more are left to its result. */
export const MAX_SIGNALS = 3;
const MAX_CHARS = 500;
const MARKED = /^[ \t]*\**CRITICAL:?\**:?[ \t]+(\S.*)$/gm;

/** Told to a helper that is heard while it works. */
export const SIGNAL_NOTE =
  '[While you work, the one who gave the task sees nothing of it. Only if they must know something at once, ' +
  'because they would do something wrong or harmful without it, write a line that begins with ' +
  '"CRITICAL: " before your next call of a tool. It interrupts them; go on then.]';

export function signalsIn(text: string): readonly string[] {
  return [...text.matchAll(MARKED)].map(([, said = '']) =>
    headOf(said.replace(/\**\s*$/, ''), MAX_CHARS),
  );
}

/** What stands before the words of the helper. */
export const signalText = ({ label, id }: Pick<SubagentRun, 'label' | 'id'>) =>
  `[Your subagent "${label}" (${id}) is still running and reports something it considers critical. It ` +
  'goes on by itself and reports its end. See whether this changes what you do now; tell the person only ' +
  'if they need it.]';

// A profile of helpers, as it stands in a YAML file of the workspace: checked here, read elsewhere.

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
  description: 'say in a sentence what the subagent is for',
  tools: 'list names of tools, like [read_file, web_fetch], or leave it out for all',
  model: 'write fast, default, or a name as /model takes it',
  readOnly: 'write true or false',
  'limits.rounds': 'write a whole number from 1 to 1000',
  'limits.minutes': 'write a whole number from 1 to 1440',
  'limits.tokens': 'write a whole number from 1000 to 100000000',
  limits: 'it may hold rounds, minutes and tokens',
  prompt: `write the instructions for every subagent of this kind, at most ${MAX_PROMPT_CHARS} characters`,
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
