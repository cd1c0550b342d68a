// The tool calls of one answer, each with its state. A call that is over opens: its arguments, output and
// time, and what the answer took, read from the record of the conversation.

import { signal, useSignal } from '@preact/signals';
import { render } from 'preact';
import { t } from '/texts.js';
import type { SessionTurns, ShownTurn } from '../../../features/conversations/rules/views.ts';
import { ToolDetails, turnFacts } from '../console/tool-details.tsx';
import { type Api, Icon, reasonOf } from './parts.tsx';

export type ToolActivity = {
  readonly callId: string;
  readonly name: string;
  readonly detail: string;
  readonly status: 'running' | 'ok' | 'failed' | 'waiting';
  readonly preview?: string;
};

type Recorded = { readonly turn: ShownTurn; readonly currency: string };
export type LoadTurn = (turnId: string) => Promise<Recorded | undefined>;

/** Read once for all calls of an answer. */
export function createTurnLoader(api: Pick<Api, 'getJson'>): LoadTurn {
  const known = new Map<string, Promise<Recorded | undefined>>();
  return (turnId) => {
    const found = known.get(turnId) ?? read(api, turnId);
    known.set(turnId, found);
    // Also what is not recorded yet is asked for again.
    found
      .then((turn) => turn === undefined && known.delete(turnId))
      .catch(() => known.delete(turnId));
    return found;
  };
}

async function read(api: Pick<Api, 'getJson'>, turnId: string): Promise<Recorded | undefined> {
  const [, session, number] = /^(.*)#(\d+)$/.exec(turnId) ?? [];
  if (session === undefined) return undefined;
  const path = `/api/v1/sessions/${encodeURIComponent(session)}/turns/${Number(number) + 1}`;
  const { turns, currency } = (await api.getJson(path)) as SessionTurns;
  const turn = turns.find((one) => one.turn === Number(number));
  return turn && { turn, currency };
}

const STATES = { running: 'running', ok: 'done', failed: 'failed', waiting: 'asks' } as const;

export function createToolSteps(
  turnId: string,
  loadTurn: LoadTurn,
  given: readonly ToolActivity[] = [],
) {
  const node = document.createElement('ul');
  node.className = 'tools';
  node.setAttribute('aria-label', t`Tools used`);
  const tools = signal(given);
  const load = () => loadTurn(turnId);
  const Steps = () => (
    <>
      {tools.value.map((tool) => (
        <li key={tool.callId} class={STATES[tool.status]}>
          {tool.status === 'running' ? <Line tool={tool} /> : <Opened tool={tool} load={load} />}
        </li>
      ))}
    </>
  );
  const show = (list: readonly ToolActivity[]) => {
    node.hidden = list.length === 0;
    tools.value = list;
  };
  show(given);
  render(<Steps />, node);
  return { node, show };
}

function Line({ tool: { name, detail, status, preview = '' } }: { readonly tool: ToolActivity }) {
  const isWaiting = status === 'waiting';
  return (
    <span class="tool-line">
      {status === 'running' ? <span class="spinner" /> : <Icon name={STATES[status]} />}
      <span class="tool-name">{name}</span>
      <span class="tool-detail" title={detail}>
        {detail}
      </span>
      {!isWaiting && preview !== '' && (
        <span class="tool-preview" title={preview}>
          {preview}
        </span>
      )}
      <span class={isWaiting ? '' : 'unseen'}>
        {isWaiting ? t`waiting for approval` : STATES[status]}
      </span>
    </span>
  );
}

type OpenedProps = {
  readonly tool: ToolActivity;
  readonly load: () => Promise<Recorded | undefined>;
};

function Opened({ tool, load }: OpenedProps) {
  const found = useSignal<Recorded | undefined>(undefined);
  const problem = useSignal('');
  const steps = found.value?.turn.steps ?? [];
  const step = steps.find((one) => one.kind === 'tool' && one.call === tool.callId);

  async function look() {
    problem.value = '';
    try {
      const recorded = await load();
      if (recorded === undefined)
        problem.value = t`The conversation began anew since: this is no longer part of it.`;
      found.value = recorded;
    } catch (error) {
      problem.value = reasonOf(error);
    }
  }

  return (
    <details
      onToggle={({ currentTarget }) => {
        if (currentTarget.open && found.value === undefined) void look();
      }}
    >
      <summary>
        <Line tool={tool} />
      </summary>
      <div class="tool-opened">
        {problem.value !== '' && <p class="problem">{problem.value}</p>}
        {problem.value === '' && found.value === undefined && <p>{t`Loading…`}</p>}
        {step?.kind === 'tool' && <ToolDetails step={step} />}
        {found.value !== undefined && step === undefined && (
          <p>{t`An approved call: its arguments stand where it was asked for.`}</p>
        )}
        {found.value !== undefined && (
          <p>
            {t`The whole answer:`} <bdi>{turnFacts(found.value.turn, found.value.currency)}</bdi>
          </p>
        )}
      </div>
    </details>
  );
}
