// Runs real turns of the whole agent with real tools in a temporary folder. The agent may read and
// write there and nothing else: no programs, no network, no messages.

import { mkdir, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { type Agent, SpendingRefusedError, type TurnInput } from '../../agent/agent.ts';
import { NO_RIGHTS, type Rights } from '../../kernel/access/rights.ts';
import { ProviderError } from '../../kernel/message/errors.ts';
import {
  channelName,
  chatId,
  DEFAULT_ACCOUNT,
  messageId,
  turnId,
} from '../../kernel/message/ids.ts';
import {
  type AgentEvent,
  type ChatRef,
  type InboundMessage,
  sessionKeyOf,
  writtenNow,
} from '../../kernel/message/message.ts';
import { OWNER_TURN } from '../../kernel/message/untrusted.ts';
import type { Clock } from '../../lib/time/clock.ts';
import type { CostCounter } from './spending.ts';

type WorkbenchDeps = {
  readonly agent: Pick<Agent, 'prepare' | 'run'>;
  /** Absolute path. */
  readonly workspace: string;
  readonly model: string;
  readonly thinkingBudget: number;
  readonly clock: Clock;
  readonly cost: Pick<CostCounter, 'total' | 'refusal'>;
};

export const EVAL_CHANNEL = channelName('eval');
const RIGHTS: Rights = { ...NO_RIGHTS, read: 'free', write: 'free' };

export type Workbench = ReturnType<typeof createWorkbench>;

/** The whole agent with its tools, in a temporary workspace. */
export function createWorkbench(deps: WorkbenchDeps) {
  const { agent, workspace, model, clock, cost } = deps;
  const turns = new Map<string, number>();

  /**
   * One turn of a conversation, with its answer; turns with the same name follow each other.
   * @throws ProviderError where it failed, SpendingRefusedError, the signal's reason
   */
  async function turn(name: string, text: string, signal: AbortSignal) {
    const seq = (turns.get(name) ?? 0) + 1;
    turns.set(name, seq);
    const input = inputOf(deps, { name, text, seq });
    const before = cost.total();
    const started = clock.monotonic();
    const context = await agent.prepare(input.session, input.chat, input.person);
    const counts = { ...NO_CALLS };
    const events = agent.run(input, context, signal);
    let next = await events.next();
    while (next.done !== true) {
      count(counts, next.value);
      next = await events.next();
    }
    const ms = Math.round(clock.monotonic() - started);
    signal.throwIfAborted();
    if (cost.refusal !== undefined) throw new SpendingRefusedError({ text: cost.refusal });
    const { kind, answers } = next.value;
    const got = answers.join('\n\n');
    if (kind !== 'answered') {
      const provider = model.split('/', 1).join();
      throw new ProviderError(got, { failure: { kind: 'malformed' }, provider, model });
    }
    const after = cost.total();
    const tokens =
      after.inputTokens + after.outputTokens - before.inputTokens - before.outputTokens;
    return { got, ms, counts: { ...counts, tokens } };
  }

  return {
    turn,
    async write(files: Readonly<Record<string, string>>): Promise<void> {
      for (const [path, text] of Object.entries(files)) {
        await mkdir(dirname(join(workspace, path)), { recursive: true });
        await writeFile(join(workspace, path), text);
      }
    },
    /** Empties the folder. */
    clear: (folder: string) => rm(join(workspace, folder), { recursive: true, force: true }),
    /** The contents of the folder, by path relative to the workspace. */
    async read(folder: string): Promise<ReadonlyMap<string, string>> {
      const entries = await readdir(join(workspace, folder), {
        recursive: true,
        withFileTypes: true,
      });
      const paths = entries
        .filter((entry) => entry.isFile())
        .map((entry) => join(entry.parentPath, entry.name));
      const found = paths.map(async (path) => {
        const text = await readFile(path, 'utf8');
        return [path.slice(workspace.length + 1), text] as const;
      });
      return new Map(await Promise.all(found));
    },
  };
}

const NO_CALLS = { 'model calls': 0, 'tool calls': 0, 'failed tool calls': 0 };

function count(counts: typeof NO_CALLS, event: AgentEvent) {
  if (event.type === 'model_called') counts['model calls'] += 1;
  if (event.type === 'tool_started') counts['tool calls'] += 1;
  if (event.type === 'tool_finished' && event.status === 'failed') counts['failed tool calls'] += 1;
}

function inputOf(
  { clock, model, thinkingBudget }: WorkbenchDeps,
  { name, text, seq }: { readonly name: string; readonly text: string; readonly seq: number },
): TurnInput {
  const chat: ChatRef = { channel: EVAL_CHANNEL, account: DEFAULT_ACCOUNT, chat: chatId(name) };
  const session = sessionKeyOf(chat);
  const id = messageId(`${EVAL_CHANNEL}:${name}:${seq}`);
  const message = labMessage({ id, chat, text }, clock.now());
  return {
    turnId: turnId(`${session}#${seq}`),
    ...{ session, chat, person: OWNER_TURN, rights: RIGHTS },
    messages: [{ seq, rights: RIGHTS, isForeign: false, message }],
    settings: { model, thinkingBudget },
    steer: async () => [],
    ...unattended('There is no person to ask: this is an evaluation. Continue without.'),
  };
}

/** A message that no person sent. */
export const labMessage = (
  about: Pick<InboundMessage, 'id' | 'chat' | 'text'>,
  now: number,
): InboundMessage => writtenNow({ ...about, sender: { kind: 'system', source: 'webhook' } }, now);

/**
 * The actions of a turn without a person: the text that the model gets where it asks or writes to
 * somebody.
 */
export const unattended = (text: string) => ({
  say: async () => undefined,
  judge: async () => ({ text, isWaiting: false }),
  post: async () => ({ status: 'failed', text }) as const,
  ask: async () => text,
});
