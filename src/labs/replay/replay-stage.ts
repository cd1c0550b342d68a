// What stands in for the world while a turn is played again: a conversation that is only looked at,
// tools that answer from the record and do nothing, and, where it is wanted, a model that says what it
// said then.

import { sized } from '../../agent/rules/tool-room.ts';
import type { RecordedAsk } from '../../features/request-log/rules/asked.ts';
import { ProviderError } from '../../kernel/message/errors.ts';
import type { TurnId } from '../../kernel/message/ids.ts';
import type { ToolEntry, TranscriptEntry } from '../../kernel/message/transcript.ts';
import type { AskedBook, SessionStore } from '../../kernel/sessions/store.ts';
import { canonicalJson } from '../../lib/json/json.ts';
import type { ModelHandle, ModelRegistry } from '../../providers/provider.ts';
import type { ModelCapabilities } from '../../providers/rules/model-capabilities.ts';
import type { BoundCall, OfferedTool, Toolbox, ToolOutcome } from '../../tools/tool.ts';
import type { RecordedTurn } from './rules/replay.ts';

const RECORDED_MODEL = 'record/record';
const CAPABILITIES: ModelCapabilities = {
  sizeClass: 'large',
  toolCalling: 'native',
  textDialect: 'json',
  thinking: false,
  strictAlternation: false,
};
const NOT_RECORDED: ToolOutcome = {
  status: 'failed',
  failure: 'blocked',
  text: 'Error (not recorded): this turn is played again from its record, nothing is really done, and the record holds no such call. Go on without it.',
};

/** Left out: as it is today. */
export type Told = Partial<Pick<RecordedAsk, 'prompt' | 'tools' | 'contextTokens'>>;

/** One turn at a time is on it. */
export class ReplayStage {
  #turn: RecordedTurn | undefined;
  #before: readonly TranscriptEntry[] = [];
  /** What the turn recorded this time. */
  own: readonly TranscriptEntry[] = [];
  #left: ToolEntry[] = [];
  #spoken = 0;
  #told: Told = {};
  #specs: readonly OfferedTool[] | undefined;
  /** What the model was asked with this time, by its prints. */
  readonly asked = new Map<string, string>();

  /** `told`: what the model is asked with as it was then; the rest is that of today. */
  put(turn: RecordedTurn, told: Told): void {
    this.#turn = turn;
    this.#before = turn.before();
    this.own = [];
    this.#left = [...turn.results];
    this.#spoken = 0;
    this.#told = told;
    this.#specs = told.tools?.map(sized);
    this.asked.clear();
  }

  get prompt(): RecordedAsk['prompt'] {
    return this.#told.prompt;
  }

  readonly book: AskedBook = {
    keep: (_session, ask, pieces) => {
      for (const { print, text } of [ask, ...pieces()]) this.asked.set(print, text);
    },
  };

  /** Appends to memory alone. */
  readonly sessions: SessionStore = {
    load: async () => this.#before,
    append: async (_session, entries) => {
      this.own = [...this.own, ...entries];
      return entries;
    },
    appendIf: async () => false,
    turn: async (_session, id: TurnId) =>
      id === this.#turn?.id ? [...this.#turn.asked, ...this.own] : [],
    earlier: async () => ({ turns: [], hasOlder: false }),
    restorePoints: async () => [],
    restore: async () => undefined,
    [Symbol.asyncDispose]: async () => undefined,
  };

  toolbox(real: Toolbox): Toolbox {
    return {
      offered: (rights, mayUse = () => true) => {
        const today = real.offered(rights, mayUse);
        const specs = this.#specs?.filter(({ name }) => mayUse(name));
        return specs === undefined ? today : { ...today, specs };
      },
      missing: () => real.missing(),
      bind: (name, args) => this.#bound(real.bind(name, args), name, args),
    };
  }

  /** A call of the same name and arguments gets what such a call got then, in the same order. */
  #bound(real: BoundCall, name: string, args: string): BoundCall {
    const wanted = canonicalJson(args);
    const isSuch = (entry: ToolEntry) =>
      entry.name === name && canonicalJson(this.#argumentsOf(entry)) === wanted;
    const run = async () => {
      const at = this.#left.findIndex(isSuch);
      const [entry] = at < 0 ? [] : this.#left.splice(at, 1);
      return entry === undefined ? NOT_RECORDED : outcomeOf(entry);
    };
    const isRecorded = this.#left.some(isSuch);
    const nothing = { isPosted: false, url: undefined, seal: async () => undefined, run } as const;
    const harmless = { ...nothing, accessIn: () => 'read' as const };
    // What was not done then is held to the rights of the turn, like any call.
    if (real.kind === 'ready') return { ...real, ...(isRecorded ? harmless : nothing) };
    const isKnown = isRecorded || this.#specs?.some((spec) => spec.name === name) === true;
    if (!isKnown) return real;
    // A tool that is not there any more, or takes other arguments now.
    return {
      kind: 'ready',
      name,
      access: 'read',
      arguments: args,
      detail: '',
      ...harmless,
    };
  }

  #argumentsOf({ callId }: ToolEntry): string {
    const calls = (this.#turn?.answers ?? []).flatMap(({ toolCalls }) => toolCalls);
    return calls.find(({ id }) => id === callId)?.arguments ?? '';
  }

  /** Says what the models said then, one after the other. */
  recordedModels(contextTokens: number): ModelRegistry {
    const stage = this;
    const handleOf = (name: string): ModelHandle => ({
      name,
      contextTokens: stage.#told.contextTokens ?? contextTokens,
      local: false,
      vision: false,
      capabilities: CAPABILITIES,
      async *stream() {
        const said = stage.#turn?.answers[stage.#spoken];
        if (said === undefined) throw endOfRecord();
        stage.#spoken += 1;
        const { text, toolCalls, thinking, model, usage } = said;
        if (text !== '') yield { type: 'text', delta: text };
        yield {
          type: 'finished',
          ...{ model, text, toolCalls, thinking },
          stop: toolCalls.length > 0 ? 'tool_calls' : 'end',
          ...(usage === undefined ? {} : { usage }),
        };
      },
    });
    return { resolve: handleOf, defaultModel: RECORDED_MODEL, fast: (model) => model };
  }

  /** Whether the models said more then than they were asked for this time. */
  get unspoken(): number {
    return (this.#turn?.answers.length ?? 0) - this.#spoken;
  }
}

function outcomeOf({ status, text, failure, isForeign }: ToolEntry): ToolOutcome {
  return {
    status: status === 'ok' ? 'ok' : 'failed',
    text,
    ...(failure === undefined ? {} : { failure }),
    ...(isForeign === undefined ? {} : { isForeign }),
  };
}

const endOfRecord = () =>
  new ProviderError('the model is asked once more than in the record', {
    failure: { kind: 'malformed' },
    provider: 'record',
    model: RECORDED_MODEL,
  });
