// The tool calls of one answer, each with its state. A call that is over opens: its arguments, output and
// time, and what the answer took, read from the record of the conversation.

import { useSignal } from '@preact/signals';
import { t } from '/texts.js';
import type { SessionTurns, ShownTurn } from '../../../features/conversations/rules/views.ts';
import { useAct } from '../console/parts.tsx';
import { ToolDetails, turnFacts } from '../console/tool-details.tsx';
import { Problem } from '../controls.tsx';
import { type Api, Icon } from './parts.tsx';

export type ToolActivity = {
  readonly callId: string;
  readonly name: string;
  readonly detail: string;
  readonly status: 'running' | 'ok' | 'failed' | 'waiting';
  readonly preview?: string;
};

type Recorded = { readonly turn: ShownTurn; readonly currency: string };

export type Turns = {
  load(turnId: string): Promise<Recorded | undefined>;
  /** Calls that a person has opened: an answer that ends is drawn anew. */
  readonly opened: Set<string>;
};

/** Each is read once for all its calls. */
export function createTurns(api: Pick<Api, 'getJson'>): Turns {
  const known = new Map<string, Promise<Recorded | undefined>>();
  return {
    opened: new Set(),
    load(turnId) {
      const found = known.get(turnId) ?? read(api, turnId);
      known.set(turnId, found);
      // Also what is not recorded yet is asked for again.
      found
        .then((turn) => turn === undefined && known.delete(turnId))
        .catch(() => known.delete(turnId));
      return found;
    },
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

type StepsProps = {
  readonly turn: string;
  readonly tools: readonly ToolActivity[];
  readonly turns: Turns;
};

export function ToolSteps({ turn, tools, turns }: StepsProps) {
  if (tools.length === 0) return null;
  return (
    <ul class="tools" aria-label={t`Tools used`}>
      {tools.map((tool) => (
        <li key={tool.callId} class={STATES[tool.status]}>
          {tool.status === 'running' ? <Line tool={tool} /> : <Opened {...{ turn, tool, turns }} />}
        </li>
      ))}
    </ul>
  );
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

type OpenedProps = Omit<StepsProps, 'tools'> & { readonly tool: ToolActivity };

function Opened({ turn, tool, turns }: OpenedProps) {
  const name = `${turn} ${tool.callId}`;
  const found = useSignal<Recorded | undefined>(undefined);
  const { problem, act } = useAct();
  const steps = found.value?.turn.steps ?? [];
  const step = steps.find((one) => one.kind === 'tool' && one.call === tool.callId);

  const look = () =>
    act(async () => {
      found.value = await turns.load(turn);
      if (found.value === undefined)
        problem.value = t`The conversation began anew since: this is no longer part of it.`;
    });

  return (
    <details
      open={turns.opened.has(name)}
      onToggle={({ currentTarget }) => {
        if (currentTarget.open) turns.opened.add(name);
        else turns.opened.delete(name);
        if (currentTarget.open && found.value === undefined) void look();
      }}
    >
      <summary>
        <Line tool={tool} />
      </summary>
      <div class="tool-opened">
        <Problem text={problem.value} />
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
