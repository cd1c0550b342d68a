// The messages of one chat in order; below them the running turns; at the end the unsent messages.
// Events may come again after a reconnect; a message is shown once.

import { batch, computed, type Signal, signal } from '@preact/signals';
import { t } from '/texts.js';
import type { Unsent } from '../outbox.ts';
import type { Amendment, ChatEvent, LiveDelta, Said, TurnEnd } from './events.ts';
import {
  type Again,
  type Answer,
  Dots,
  type Live,
  LiveMessage,
  Message,
  type MessageContext,
  type Own,
  type Pending,
  UnsentMessage,
} from './message.tsx';

/** `turnId/n`: the n-th answer of a turn. */
const ANSWER_ID = /^(.*#\d+)\/(\d+)$/;
/** A message this young will get an answer soon. */
const RECENT_MS = 30_000;
/** After a reconnect the gateway sends the running turns; the others are over. */
const STALE_MS = 1500;

type Running = {
  readonly turnId: string;
  /** What is drawn, at most once per frame. */
  readonly live: Signal<Live>;
  /** What has arrived. */
  now: Live;
  isStale: boolean;
};

export type Conversation = ReturnType<typeof createConversation>;
type Given = Omit<MessageContext, 'unsent' | 'pressed' | 'again'>;

export function createConversation(given: Given) {
  const said = signal<readonly Signal<Own | Answer>[]>([]);
  const turns = signal<readonly Running[]>([]);
  const unsent = signal<readonly Pending[]>([]);
  const isWaiting = signal(false);
  const isBegun = signal(false);
  const pressed = signal<readonly string[]>([]);
  const again = signal<Again | undefined>(undefined);
  const known = new Set<string>();
  const over = new Set<string>();
  /** Of turns whose answer has not arrived. */
  const ends = new Map<string, Pick<TurnEnd, 'kind' | 'tools'>>();
  let isDrawing = false;

  const find = (id: string) => said.value.find((one) => one.value.id === id);
  const running = (turnId: string) => turns.value.find((one) => one.turnId === turnId);

  function add(message: Own | Answer) {
    said.value = [...said.value, signal(message)];
  }

  function remove(id: string) {
    said.value = said.value.filter((one) => one.value.id !== id);
  }

  function set(id: string, change: Partial<Own> | Partial<Answer>) {
    const message = find(id);
    if (message !== undefined) message.value = { ...message.value, ...change } as Own | Answer;
  }

  function showSaid(event: Said) {
    if (known.has(event.id)) return;
    known.add(event.id);
    isBegun.value = true;
    if (event.amends !== undefined) return showChange(event.amends, event);
    if (event.from === 'person') return showOwn(event);
    if (event.closes !== undefined)
      return set(event.closes, { choices: [], ...(event.text && { text: event.text }) });
    if (event.ended !== undefined) return showEnd(event.ended, event);
    if (event.takesAway !== undefined) return remove(event.takesAway);
    if (event.replaced !== undefined) return set(event.replaced, { isReplaced: true });
    isWaiting.value = false;
    showAnswer(event);
  }

  function showOwn({ id, text, at, press, files }: Said) {
    dropPending(({ clientId }) => clientId === id.slice(id.lastIndexOf(':') + 1));
    if (press !== undefined) pressed.value = [...pressed.value, press];
    add({ from: 'person', id, text, at, files, isPress: press !== undefined, isEdited: false });
    awaitAnswer(at);
  }

  /** The gateway makes one. */
  function awaitAnswer(at: number) {
    again.value = undefined;
    isWaiting.value = turns.value.length === 0 && Date.now() - at <= RECENT_MS;
  }

  /** Ignores a change of a message older than those shown. */
  function showChange({ id, kind }: Amendment, { text, at }: Said) {
    dropPending(({ amends }) => amends?.id === id);
    if (kind === 'again') awaitAnswer(at);
    else if (kind === 'edited') set(id, { text, isEdited: true });
    else remove(id);
  }

  /** Below the newest answer is the button for another one, if what it answers is shown. */
  function showAnswer({ id, text, at, files, choices, replyTo = '' }: Said) {
    const [, turn = '', ordinal] = ANSWER_ID.exec(id) ?? [];
    const first = ordinal === '0' ? { ...running(turn)?.now, ...ends.get(turn) } : {};
    endTurn(turn);
    const asked = find(replyTo)?.value;
    const isAgainst = turn !== '' && asked?.from === 'person' && !asked.isPress;
    again.value = isAgainst ? { answer: id, message: replyTo } : undefined;
    const { tools = [], kind } = first;
    add({ ...answerOf(id, text, turn), at, files, choices, tools, activity: endText(kind) });
  }

  /** At the answer, or as a message of its own. */
  function showEnd({ turn, answers, tools, kind }: TurnEnd, { id, text, at }: Said) {
    const answered = find(`${turn}/0`)?.value;
    const activity = endText(kind);
    if (answers > 0 && answered?.from === 'agent')
      return set(answered.id, { tools, activity: activity || answered.activity });
    if (answers > 0) return void ends.set(turn, { kind, tools });
    if (over.has(turn)) return;
    endTurn(turn);
    isWaiting.value = false;
    add({ ...answerOf(id, text, turn), at, tools, activity });
  }

  function showLive(delta: LiveDelta) {
    const { turnId, phase, result } = delta;
    if (over.has(turnId)) return;
    isWaiting.value = false;
    const turn = running(turnId) ?? startTurn(turnId);
    turn.isStale = false;
    turn.now = applied(turn.now, delta);
    const { text, tools, activity } = turn.now;
    if (phase !== 'ended' || result === undefined) return draw();
    if (result.answers > 0 && result.kind !== 'moved')
      ends.set(turnId, { kind: result.kind, tools });
    if (result.answers > 0) return draw();
    endTurn(turnId);
    add({ ...answerOf(`${turnId}/live`, text, turnId), tools, activity });
  }

  function startTurn(turnId: string): Running {
    again.value = undefined;
    const now = { text: '', tools: [], hasDots: true, activity: '' };
    const turn = { turnId, live: signal<Live>(now), now, isStale: false };
    turns.value = [...turns.value, turn];
    return turn;
  }

  function draw() {
    if (isDrawing) return;
    isDrawing = true;
    requestAnimationFrame(() => {
      isDrawing = false;
      for (const turn of turns.value) turn.live.value = turn.now;
    });
  }

  function endTurn(turnId: string) {
    turns.value = turns.value.filter((one) => one.turnId !== turnId);
    over.add(turnId);
  }

  function dropPending(is: (unsent: Unsent) => boolean) {
    unsent.value = unsent.value.filter((one) => !is(one.unsent));
  }

  function setPending(message: Unsent, reason?: string) {
    unsent.value = unsent.value.map((one) =>
      one.unsent.clientId === message.clientId ? { unsent: message, reason } : one,
    );
  }

  const context: MessageContext = {
    ...given,
    ...{ unsent, pressed, again },
    onTakeBack(message) {
      dropPending(({ clientId }) => clientId === message.clientId);
      given.onTakeBack(message);
    },
  };

  return {
    ...{ context, said, turns, unsent, isWaiting },
    isAnswering: computed(() => turns.value.length > 0 || isWaiting.value),
    isEmpty: computed(
      () => !isBegun.value && turns.value.length === 0 && unsent.value.length === 0,
    ),
    show(event: ChatEvent) {
      batch(() => (event.type === 'said' ? showSaid(event) : showLive(event)));
    },
    /** Live updates start again from an empty text. */
    connected() {
      for (const turn of turns.value) {
        turn.now = { ...turn.now, text: '' };
        turn.isStale = true;
      }
      if (turns.value.length === 0) return;
      setTimeout(() => {
        turns.value = turns.value.filter(({ isStale }) => !isStale);
      }, STALE_MS);
    },
    addUnsent(message: Unsent) {
      const { amends } = message;
      if (amends !== undefined) dropPending((one) => one.amends?.id === amends.id);
      unsent.value = [...unsent.value, { unsent: message, reason: undefined }];
    },
    /** @param reason why it is not sent yet */
    stillUnsent: setPending,
  };
}

const answerOf = (id: string, text: string, turn: string) => ({
  ...{ from: 'agent' as const, id, text, turn, isReplaced: false },
  ...{ at: undefined, files: undefined, choices: undefined },
});

/** With a difference to what this connection sent before. */
function applied({ text, tools }: Live, delta: LiveDelta): Live {
  const { keep, append, phase, notice } = delta;
  const hasDots = phase !== 'ended' && (phase !== 'writing' || notice !== undefined);
  return {
    text: text.slice(0, keep) + append,
    tools: delta.tools ?? tools,
    hasDots,
    activity: phase === 'ended' ? endOf(delta) : (hasDots && notice) || '',
  };
}

/** Empty where an answer follows. */
function endOf({ result }: LiveDelta): string {
  if (result === undefined) return t`Interrupted. Continuing.`;
  if (result.kind === 'moved') return t`Continues on another channel.`;
  return result.answers === 0 ? endText('stopped') : '';
}

/** Half a sentence is not to be taken for the whole. */
const endText = (kind: TurnEnd['kind'] | undefined) => (kind === 'stopped' ? t`Stopped.` : '');

export function ConversationView({ conversation }: { readonly conversation: Conversation }) {
  const { context, said, turns, unsent, isWaiting } = conversation;
  return (
    <div class="messages">
      <div class="said" role="log" aria-label={t`Messages`}>
        {said.value.map((message) => (
          <Message key={message.peek().id} message={message} context={context} />
        ))}
      </div>
      <div class="live-turns">
        {turns.value.map(({ turnId, live }) => (
          <LiveMessage key={turnId} turn={turnId} live={live} turns={context.turns} />
        ))}
      </div>
      <p class="activity waiting" hidden={!isWaiting.value}>
        <Dots />
      </p>
      <div class="unsent-list">
        {unsent.value.map((message) => {
          const { clientId, amends } = message.unsent;
          if (amends !== undefined) return undefined;
          return <UnsentMessage key={clientId} message={message} context={context} />;
        })}
      </div>
    </div>
  );
}
