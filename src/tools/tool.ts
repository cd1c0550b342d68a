// CONTRACT of a tool and of the toolbox, and tool descriptions read from descriptions/<tool>.md at
// start-up (first paragraph: schema; rest: system prompt).

import { readFileSync } from 'node:fs';
import type { z } from 'zod';
import type { PersonQuestion } from '../kernel/access/person.ts';
import type { Reach, Rights, ToolAccess } from '../kernel/access/rights.ts';
import type { AttachedMedia, OutboundAttachment } from '../kernel/message/attachment.ts';
import type { ToolFailureKind } from '../kernel/message/errors.ts';
import type { MediaId, SessionKey, TurnId } from '../kernel/message/ids.ts';
import type { ChatRef, Letter, Payer } from '../kernel/message/message.ts';
import type { TurnPerson } from '../kernel/message/untrusted.ts';
import type { RequestWords } from '../kernel/questions/rules/question-text.ts';
import type { ParameterAliases } from '../lib/json/coerce.ts';
import type { Clock } from '../lib/time/clock.ts';
import type { ToolSpec } from '../providers/provider.ts';

export type ToolContext = {
  readonly session: SessionKey;
  readonly turnId: TurnId;
  readonly chat: ChatRef;
  readonly signal: AbortSignal;
  readonly clock: Clock;
  /** Absolute path of the folder that file tools are confined to. */
  readonly workspace: string;
  /** The rights of the turn; the agent has checked the call's own access already. */
  readonly rights: Rights;
  /** The conversation shows untrusted content. */
  readonly isTainted: boolean;
  /** For an approved call: what it depended on when the owner was asked, as `sealOf` returned. */
  readonly seal?: string | undefined;
  /** For an approved call: when the owner was asked, epoch milliseconds. */
  readonly askedAt?: number;
  /**
   * When the message arrived that the call serves, epoch milliseconds; absent outside of a turn.
   */
  readonly requestedAt?: number | undefined;
  /** Absent: every existing tool may be used. */
  mayUse?(tool: string): boolean;
  /** The person of the turn: no tool reaches other people's notes. */
  readonly person: TurnPerson;
  /**
   * The message that is answered, whose sender and chat pay for model calls; absent outside of a
   * turn.
   */
  readonly payer?: Payer;
  /** Attachments of this conversation's messages, oldest first; absent outside of a turn. */
  readonly attached?: readonly AttachedMedia[];
  /** Whether its message contains only the person's own content; absent outside of a turn. */
  isOwnMedia?(media: MediaId): boolean;
  /** For a tool that taints: marks this result as free of untrusted content. */
  own?(): void;
  /** Shows the model an image with the result; absent outside of a turn. */
  show?(image: AttachedMedia): void;
  /**
   * Posts a letter, which is sent or shown to an owner first; returns the outcome. Absent outside
   * of a turn. @throws ToolError
   */
  post?(letter: Letter): Promise<string>;
  /**
   * Asks the person of the chat; returns a text for the model. The answer starts a later turn.
   * Absent outside of a turn. @throws ToolError
   */
  ask?(question: PersonQuestion): Promise<string>;
  /** Sends a text, files or both to the current chat at once; a retry of the call sends once. */
  say(markdown: string, attachments?: readonly OutboundAttachment[]): Promise<void>;
};

type Need = { readonly access: ToolAccess; readonly reach: Reach };

/** Another name models use for a tool; `implies`: arguments it implies if none are given. */
type ToolAlias =
  | string
  | { readonly name: string; readonly implies: Readonly<Record<string, unknown>> };

export type Tool<Input = unknown> = {
  readonly name: string;
  /** Ignores case, `_` and `-`. A real name always takes precedence over an alias. */
  readonly aliases?: readonly ToolAlias[];
  /** Other names of a parameter, by its real name. */
  readonly parameterAliases?: ParameterAliases;
  readonly description: string;
  /** When to use it and when not; part of the system prompt. */
  readonly guidance?: string;
  /** Its kind of access; a turn without that right is not offered the tool. */
  readonly access: ToolAccess;
  /** The access of this call, if it depends on its input or on what was read before. */
  accessOf?(input: Input, isTainted: boolean): ToolAccess;
  /** The extent of this call's effects; absent: they can leave this machine. */
  reachOf?(input: Input): Reach;
  /**
   * Some of its calls concern only the sender's own notes or reminders: see `own` of the rights.
   */
  readonly isForOneself?: true;
  /** This call only posts a letter, which decides whether an owner is asked. */
  isPosted?(input: Input): boolean;
  /** Further rights that this call needs, besides `access`. */
  needs?(input: Input): readonly Need[];
  /** The URL that this call requests. */
  urlOf?(input: Input): string | undefined;
  /**
   * Its result contains untrusted content: the toolbox wraps it, and the conversation is tainted.
   */
  readonly taints?: true;
  /**
   * For a tool that taints: whether this input, or what it found, is only the person's own text.
   */
  isOwn?(input: Input, found: string): boolean;
  /** Such a result is shown unchanged, if it must be copied exactly. */
  readonly isVerbatim?: true;
  readonly input: z.ZodType<Input>;
  /** JSON Schema of the arguments for the model; absent: that of `input`. */
  readonly schema?: Readonly<Record<string, unknown>>;
  /**
   * Whether it can work now: its key is set, its program was found. Called at every model call, so
   * it only uses what is known already. A tool that cannot work does not exist for the model.
   */
  isAvailable?(): boolean;
  /** Why it is not available, for people and for the model. */
  unavailableBecause?(): string;
  /** Longest run of this call, milliseconds, if it differs from the configured one of all tools. */
  timeoutMs?(input: Input): number;
  /** What an allow rule for this call is bound to; absent: all its arguments. */
  standing?(input: Input): StandingTerms;
  /** The approval request for this call; absent: its arguments, a line each. */
  requestOf?(input: Input, at: RequestMoment): RequestWords | undefined;
  /** An owner is asked each time, even if the rights permit it. */
  readonly alwaysAsks?: true;
  /**
   * What the call depends on besides its arguments, e.g. the content of a program, a line each. An
   * approval covers that as well, and `run` compares it as late as possible. @throws ToolError,
   * RequestError
   */
  sealOf?(input: Input, context: Pick<ToolContext, 'workspace'>): Promise<string>;
  /** Short text for people that says what a call is about, e.g. the path. */
  describe(input: Input): string;
  /** The result text for the model. @throws ToolError, RequestError */
  run(input: Input, context: ToolContext): Promise<string>;
};

/** Time and zone of an approval request. `timeZone`: empty = the machine's. */
type RequestMoment = { readonly now: number; readonly timeZone: string };

/** What an allow rule covers, besides the tool and what the call depends on. */
export type StandingTerms = {
  /** Equal for calls that an owner would consider the same. */
  readonly pattern: string;
  /** A description for people; absent: exactly this call. */
  readonly scope?: string;
  /** The first approval covers all later calls too. */
  readonly asksOnce?: boolean;
};

/** `text` is within the toolbox's limit, not counting the lines around untrusted content. */
export type ToolOutcome = {
  readonly status: 'ok' | 'failed';
  readonly text: string;
  /** All of it, if `text` had to be cut; without the lines around untrusted content. */
  readonly whole?: string;
  /** Of a failed call: why. */
  readonly failure?: ToolFailureKind;
  /** It contains untrusted content. */
  readonly isForeign?: true;
};

export type OfferedTool = ToolSpec & { readonly jsonChars: number };

export type OfferedTools = {
  readonly specs: readonly OfferedTool[];
  /** The guidance of those that are described, for the system prompt. */
  guidance(isDescribed: (tool: string) => boolean): string;
};

/** A call after lookup, coercion and validation; `run` never throws. */
export type BoundCall =
  | {
      readonly kind: 'ready';
      readonly name: string;
      readonly access: ToolAccess;
      accessIn(turn: { readonly isTainted: boolean }): ToolAccess;
      readonly reach: Reach;
      readonly isPosted: boolean;
      readonly needs?: readonly Need[];
      /** The URL that it requests. */
      readonly url: string | undefined;
      /** The arguments as interpreted, JSON: bound again, they mean the same call. */
      readonly arguments: string;
      readonly detail: string;
      /**
       * What an approval is bound to besides the arguments; an outcome if the call could not run
       * anyway.
       */
      seal(context: Pick<ToolContext, 'workspace'>): Promise<string | undefined | ToolOutcome>;
      request?(at: RequestMoment): RequestWords | undefined;
      /** An owner is asked each time, whatever the rights are. */
      readonly alwaysAsks?: boolean;
      /** Absent: an owner is asked each time. Call it after `seal`. */
      standing?(): StandingTerms;
      run(context: ToolContext): Promise<ToolOutcome>;
    }
  /** Unknown tool or bad input; `outcome` explains the valid shape to the model. */
  | { readonly kind: 'refused'; readonly name: string; readonly outcome: ToolOutcome };

/** A tool that is switched on but cannot work. */
export type MissingTool = { readonly name: string; readonly reason: string };

export interface Toolbox {
  /** The tools offered to a turn with these rights, of those it may use. */
  offered(rights: Rights, mayUse?: (tool: string) => boolean): OfferedTools;
  /** `argumentsJson` is the model's text, verbatim. */
  bind(name: string, argumentsJson: string): BoundCall;
  missing(): readonly MissingTool[];
}

/** `isForeign`: the text contains untrusted content. */
export type MarkedAnswer = { readonly text: string; readonly isForeign: boolean };

/** For a tool that taints with some of its answers, but not with a failure. */
export function markedAnswers<Input extends object>(
  answer: (input: Input, context: ToolContext) => Promise<MarkedAnswer>,
): Required<Pick<Tool<Input>, 'taints' | 'isOwn' | 'run'>> {
  const foreign = new WeakSet<Input>();
  return {
    taints: true,
    isOwn: (input) => !foreign.has(input),
    async run(input, context) {
      const { text, isForeign } = await answer(input, context);
      if (isForeign) foreign.add(input);
      return text;
    },
  };
}

// The description of a tool for the model, from descriptions/<tool>.md: the first paragraph is part
// of the tool's schema, the rest, when to use it and when not, of the system prompt. Read at
// start-up.

export function readDescription(tool: string) {
  const text = readFileSync(new URL(`./descriptions/${tool}.md`, import.meta.url), 'utf8').trim();
  const end = text.indexOf('\n\n');
  if (end < 0) return { description: text, guidance: '' };
  return { description: text.slice(0, end), guidance: text.slice(end).trim() };
}

/** A tool with its texts; the type of its input follows from the schema. */
export const defineTool = <Schema extends z.ZodType>(
  tool: Omit<Tool<z.infer<Schema>>, 'description' | 'guidance' | 'input'> & {
    readonly input: Schema;
  },
): Tool<z.infer<Schema>> => ({ ...tool, ...readDescription(tool.name) }) as Tool<z.infer<Schema>>;
