// The messages of one chat in order; below them the running turns; at the end the unsent messages.
// Events may come again after a reconnect; a message is shown once.

import { batch, computed, type Signal, signal } from '@preact/signals';
import { t } from '/texts.js';
import type { Unsent } from '../outbox.ts';
import type { Amendment, ChatEvent, LiveDelta, Said, TurnEnd } from './events.ts';
import {
  type Answer,
  type Change,
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
  isStopped: boolean;
  isStale: boolean;
};

export type Conversation = ReturnType<typeof createConversation>;
type Given = Omit<MessageContext, 'pressed' | 'onTakeBack'> & { onTakeBack(text: string): void };

export function createConversation(given: Given) {
  const said = signal<readonly Signal<Own | Answer>[]>([]);
  const turns = signal<readonly Running[]>([]);
  const unsent = signal<readonly Pending[]>([]);
  const isWaiting = signal(false);
  const isBegun = signal(false);
  const pressed = signal<ReadonlySet<string>>(new Set());
  const known = new Set<string>();
  const over = new Set<string>();
  /** Of turns whose answer has not arrived. */
  const ends = new Map<string, TurnEnd>();
  /** Changes of messages that are not shown yet. */
  const changes = new Map<string, Change>();
  let isDrawing = false;

  const find = (id: string) => said.value.find((one) => one.value.id === id);
  const running = (turnId: string) => turns.value.find((one) => one.turnId === turnId);

  function add(message: Own | Answer) {
    said.value = [...said.value, signal(message)];
  }

  function remove(id: string) {
    said.value = said.value.filter((one) => one.value.id !== id);
  }

  function setOwn(id: string, change: Partial<Own>) {
    const message = find(id);
    if (message?.value.from === 'person') message.value = { ...message.value, ...change };
  }

  function setAnswer(id: string, change: Partial<Answer>) {
    const message = find(id);
    if (message?.value.from === 'agent') message.value = { ...message.value, ...change };
  }

  function showSaid(event: Said) {
    if (known.has(event.id)) return;
    known.add(event.id);
    isBegun.value = true;
    if (event.amends?.kind === 'again') return showAgain(event);
    if (event.amends !== undefined) return showChange(event.amends, event.text);
    if (event.from === 'person') return showOwn(event);
    if (event.closes !== undefined) return closeChoices(event.closes, event.text);
    if (event.ended !== undefined) return showEnd(event.ended, event);
    if (event.takesAway !== undefined) return remove(event.takesAway);
    if (event.replaced !== undefined) return setAnswer(event.replaced, { isReplaced: true });
    isWaiting.value = false;
    showAnswer(event);
  }

  function showOwn({ id, text, at, press, files }: Said) {
    dropPending(id.slice(id.lastIndexOf(':') + 1));
    dropAgain();
    if (press !== undefined) setPressed(press, true);
    const own = { from: 'person', id, text, at, files, isPress: press !== undefined } as const;
    add({ ...own, isEdited: false, change: changes.get(id) });
    awaitAnswer(at);
  }

  function awaitAnswer(at: number) {
    isWaiting.value = turns.value.length === 0 && Date.now() - at <= RECENT_MS;
  }

  /** Ignores a change of a message older than those shown. */
  function showChange({ id, kind }: Amendment, text: string) {
    if (kind === 'edited') setOwn(id, { text, isEdited: true, change: undefined });
    else remove(id);
    changes.delete(id);
  }

  function dropAgain() {
    for (const { value } of said.value)
      if (value.from === 'agent' && value.again !== undefined)
        setAnswer(value.id, { again: undefined });
  }

  /** The gateway makes another answer. */
  function showAgain({ at }: Said) {
    dropAgain();
    awaitAnswer(at);
  }

  function closeChoices(id: string, now: string) {
    setAnswer(id, { choices: [], ...(now === '' ? {} : { text: now }) });
  }

  function setPressed(token: string, is: boolean) {
    const tokens = new Set(pressed.value);
    if (is) tokens.add(token);
    else tokens.delete(token);
    pressed.value = tokens;
  }

  /** Below the newest answer is the button for another one, if what it answers is shown. */
  function showAnswer({ id, text, at, files, choices, replyTo = '' }: Said) {
    const [, turn, ordinal] = ANSWER_ID.exec(id) ?? [];
    const begun = ordinal === '0' && turn !== undefined ? running(turn) : undefined;
    const end = ordinal === '0' && turn !== undefined ? ends.get(turn) : undefined;
    if (turn !== undefined) endTurn(turn);
    dropAgain();
    const asked = find(replyTo)?.value;
    const isAnswer = turn !== undefined && asked?.from === 'person' && !asked.isPress;
    const isStopped = begun?.isStopped === true || end?.kind === 'stopped';
    add({
      ...answerOf(id, text, turn),
      ...{ at, files, choices },
      tools: begun?.now.tools ?? end?.tools ?? [],
      activity: isStopped ? t`Stopped.` : '',
      again: isAnswer ? { message: replyTo, isAsked: false } : undefined,
    });
  }

  /**
   * Shows how a turn ended: in the live view, at the answer that follows, or as a message of its
   * own.
   */
  function showEnd(ended: TurnEnd, { id, text, at }: Said) {
    const { turn, answers, tools, kind } = ended;
    const begun = running(turn);
    const isStopped = kind === 'stopped';
    if (answers > 0) {
      const answered = find(`${turn}/0`)?.value;
      if (begun !== undefined) {
        begun.isStopped = isStopped;
        begun.now = { ...begun.now, tools };
        draw();
      } else if (answered?.from === 'agent') {
        const activity = isStopped ? t`Stopped.` : answered.activity;
        setAnswer(answered.id, {
          ...(answered.tools.length === 0 ? { tools } : {}),
          activity,
        });
      } else {
        ends.set(turn, ended);
      }
      return;
    }
    if (over.has(turn)) return;
    endTurn(turn);
    isWaiting.value = false;
    add({ ...answerOf(id, text, turn), at, tools, activity: isStopped ? t`Stopped.` : '' });
  }

  function showLive(delta: LiveDelta) {
    const { turnId, phase, result } = delta;
    if (over.has(turnId)) return;
    isWaiting.value = false;
    const turn = running(turnId) ?? startTurn(turnId);
    turn.isStale = false;
    turn.isStopped = phase === 'ended' && result?.kind === 'stopped';
    turn.now = applied(turn.now, delta);
    if (phase !== 'ended' || result === undefined || result.answers > 0) return draw();
    endTurn(turnId);
    const { text, tools, activity } = turn.now;
    add({ ...answerOf(`${turnId}/live`, text, turnId), tools, activity });
  }

  function startTurn(turnId: string): Running {
    dropAgain();
    const now = { text: '', tools: [], hasDots: true, activity: '' };
    const turn = { turnId, live: signal<Live>(now), now, isStopped: false, isStale: false };
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

  function dropPending(clientId: string) {
    unsent.value = unsent.value.filter((one) => one.unsent.clientId !== clientId);
  }

  function setPending({ clientId }: Unsent, change: Partial<Pending>) {
    unsent.value = unsent.value.map((one) =>
      one.unsent.clientId === clientId ? { ...one, ...change } : one,
    );
  }

  /** Remembered, if its message is not shown yet. */
  function setChange({ id, kind }: Amendment, text: string, reason: string, isRefused: boolean) {
    const change = { kind, text, reason, isRefused };
    if (isRefused) changes.delete(id);
    else changes.set(id, change);
    setOwn(id, { change });
  }

  function refuseAgain(reason: string) {
    for (const { value } of said.value) {
      if (value.from !== 'agent' || value.again === undefined) continue;
      const problem = t`Not answered again: ${reason}`;
      setAnswer(value.id, { again: { ...value.again, isAsked: false }, problem });
    }
  }

  const context: MessageContext = {
    ...given,
    pressed,
    onTakeBack({ clientId, text }) {
      dropPending(clientId);
      given.onTakeBack(text);
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
      const { text, press, amends } = message;
      if (amends?.kind === 'again') {
        for (const { value } of said.value)
          if (value.from === 'agent' && value.again?.message === amends.id)
            setAnswer(value.id, { again: { ...value.again, isAsked: true } });
        return;
      }
      if (amends !== undefined) return setChange(amends, text, '', false);
      if (press !== undefined) setPressed(press, true);
      unsent.value = [...unsent.value, { unsent: message, state: t`Sending…`, refusal: '' }];
    },
    stillUnsent(message: Unsent, reason: string) {
      const { amends, text } = message;
      if (amends !== undefined) return setChange(amends, text, reason, false);
      setPending(message, { state: t`Not sent yet, trying again. ${reason}`.trim() });
    },
    refused(message: Unsent, reason: string) {
      const { text, press, amends } = message;
      if (amends?.kind === 'again') return refuseAgain(reason);
      if (amends !== undefined) return setChange(amends, text, reason, true);
      if (press !== undefined) setPressed(press, false);
      setPending(message, { refusal: reason });
    },
  };
}

const answerOf = (id: string, text: string, turn = ''): Answer => ({
  ...{ from: 'agent', id, text, turn },
  ...{ at: undefined, files: undefined, choices: undefined, again: undefined },
  ...{ tools: [], activity: '', problem: '', isReplaced: false },
});

/** With a difference to what this connection sent before. */
function applied({ text, tools }: Live, delta: LiveDelta): Live {
  const { keep, append, phase, notice } = delta;
  const ended = phase === 'ended' ? endText(delta) : undefined;
  const hasDots = phase !== 'ended' && (phase !== 'writing' || notice !== undefined);
  return {
    text: text.slice(0, keep) + append,
    tools: delta.tools ?? tools,
    hasDots,
    activity: ended ?? (hasDots ? (notice ?? '') : ''),
  };
}

/** Empty where an answer follows. */
function endText({ result }: LiveDelta): string {
  if (result === undefined) return t`Interrupted. Continuing.`;
  if (result.kind === 'moved') return t`Continues on another channel.`;
  return result.answers === 0 ? t`Stopped.` : '';
}

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
        {unsent.value.map((message) => (
          <UnsentMessage key={message.unsent.clientId} message={message} context={context} />
        ))}
      </div>
    </div>
  );
}
