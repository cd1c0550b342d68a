// The messages of one chat in order; below them the running turns; at the end the unsent messages.
// Events may come again after a reconnect; a message is shown once.

import { t } from '/texts.js';
import type { Amendment, ChatEvent, LiveDelta, Said, TurnEnd } from './chat/events.ts';
import { createToolSteps, type LoadTurn } from './chat/tool-steps.tsx';
import { createChoices } from './choices.ts';
import { type Child, element, iconButton } from './element.ts';
import { createLiveTurn, dots, type LiveTurn } from './live-turn.ts';
import { createMarkdownView } from './markdown-view.ts';
import { agentMessage, unsentMessage } from './message.ts';
import type { Unsent } from './outbox.ts';
import { createPersonMessage } from './person-message.ts';

/** `turnId/n`: the n-th answer of a turn. */
const ANSWER_ID = /^(.*#\d+)\/(\d+)$/;
/** A message this young will get an answer soon. */
const RECENT_MS = 30_000;
/** After a reconnect the gateway sends the running turns; the others are over. */
const STALE_MS = 1500;

type ConversationParts = {
  showFiles(files: Said['files']): Child;
  readonly loadTurn: LoadTurn;
  keepPlace(change: () => void): void;
  onAnswering(isAnswering: boolean): void;
  onTakeBack(text: string): void;
  onPress(label: string, token: string): void;
  onChange(amends: Amendment, text: string): void;
};

type Running = LiveTurn & { isStale?: boolean };

export type Conversation = ReturnType<typeof createConversation>;

export function createConversation({
  showFiles,
  loadTurn,
  keepPlace,
  onAnswering,
  onTakeBack,
  onPress,
  onChange,
}: ConversationParts) {
  const choices = createChoices(onPress);
  const answers = new Map<string, HTMLElement>();
  const own = new Map<string, ReturnType<typeof createPersonMessage>>();
  /** Those of them that are no presses. */
  const typed = new Set<string>();
  /** Changes that the gateway has not confirmed, by the message they change. */
  const changes = new Map<string, Amendment>();
  const said = element('div', { className: 'said', role: 'log', aria: { label: t`Messages` } });
  const live = element('div', { className: 'live-turns' });
  const unsent = element('div', { className: 'unsent-list' });
  const waiting = element('p', { className: 'activity waiting', hidden: true }, dots());
  const turns = new Map<string, Running>();
  /** The button below the newest answer, and the message it answers. */
  let again: { readonly node: HTMLElement; readonly button: HTMLButtonElement } | undefined;
  /** The nodes of turns' first answers, and the ends of turns whose answer has not arrived. */
  const firstAnswers = new Map<string, HTMLElement>();
  const ends = new Map<string, TurnEnd>();
  const over = new Set<string>();
  const known = new Set<string>();
  const pending = new Map<string, ReturnType<typeof unsentMessage>>();

  function tellState() {
    onAnswering(turns.size > 0 || !waiting.hidden);
  }

  function showSaid(event: Said) {
    if (known.has(event.id)) return;
    known.add(event.id);
    if (event.amends?.kind === 'again') return showAgain(event);
    if (event.amends !== undefined) return showChange(event.amends, event.text);
    if (event.from === 'person') return showOwn(event);
    if (event.closes !== undefined) return closeChoices(event.closes, event.text);
    if (event.ended !== undefined) return showEnd(event.ended, event);
    if (event.takesAway !== undefined) return answers.get(event.takesAway)?.remove();
    if (event.replaced !== undefined) return foldReplaced(answers.get(event.replaced));
    waiting.hidden = true;
    const node = showAnswer(event);
    answers.set(event.id, node);
    offerAgain(node, event);
    if (event.choices !== undefined) {
      node.querySelector('footer')?.before(choices.row(event.choices));
    }
    said.append(node);
  }

  function showOwn({ id, text, at, press, files }: Said) {
    dropPending(id.slice(id.lastIndexOf(':') + 1));
    dropAgain();
    if (press !== undefined) choices.pressed(press);
    const message = createPersonMessage({
      text,
      at,
      files: showFiles(files),
      onChange: press === undefined ? (kind, now) => onChange({ id, kind }, now) : undefined,
    });
    own.set(id, message);
    if (press === undefined) typed.add(id);
    said.append(message.node);
    const unconfirmed = changes.get(id);
    if (unconfirmed !== undefined) message.waits(unconfirmed);
    waiting.hidden = turns.size > 0 || Date.now() - at > RECENT_MS;
  }

  /** Ignores a change of a message older than those shown. */
  function showChange({ id, kind }: Amendment, text: string) {
    changes.delete(id);
    const message = own.get(id);
    if (kind === 'edited') return message?.changed(text);
    message?.node.remove();
    own.delete(id);
  }

  /** Below the newest answer, if what it answers is shown. */
  function offerAgain(node: HTMLElement, { id, replyTo = '' }: Said) {
    dropAgain();
    if (!ANSWER_ID.test(id) || !typed.has(replyTo) || !own.has(replyTo)) return;
    const label = t`Answer again. What tools did is not undone.`;
    const ask = () => {
      button.disabled = true;
      onChange({ id: replyTo, kind: 'again' }, '');
    };
    const button = iconButton('retry', label, ask, 'small');
    node.querySelector('footer')?.append(button);
    again = { node, button };
  }

  function dropAgain() {
    again?.button.remove();
    again = undefined;
  }

  /** The gateway makes another answer. */
  function showAgain({ at }: Said) {
    dropAgain();
    waiting.hidden = turns.size > 0 || Date.now() - at > RECENT_MS;
  }

  function refuseAgain(reason: string) {
    if (again === undefined) return;
    again.button.disabled = false;
    const props = { className: 'state problem', role: 'alert' };
    again.node.append(element('p', props, t`Not answered again: ${reason}`));
  }

  /** A newer answer follows; this one can still be read. */
  function foldReplaced(node: HTMLElement | undefined) {
    if (node === undefined) return;
    const isTooled = node.querySelector('.tools li') !== null;
    const words = isTooled
      ? t`Replaced answer. What its tools did was not undone.`
      : t`Replaced answer`;
    const details = element('details', { className: 'replaced' }, element('summary', {}, words));
    node.replaceWith(details);
    details.append(node);
  }

  /** Removes the buttons below it. */
  function closeChoices(id: string, now: string) {
    const node = answers.get(id);
    node?.querySelector('.choices')?.remove();
    if (node === undefined || now === '') return;
    const body = node.querySelector<HTMLElement>('.body');
    if (body !== null) createMarkdownView(body).finish(now);
  }

  function showAnswer(event: Said) {
    const [, turnId, ordinal] = ANSWER_ID.exec(event.id) ?? [];
    const isFirst = ordinal === '0';
    const turn = isFirst && turnId !== undefined ? turns.get(turnId) : undefined;
    if (turnId !== undefined) endTurn(turnId);
    turn?.finish(event.text, event.at);
    const node = turn?.node ?? agentMessage(event.text, event.at, showFiles(event.files));
    if (!isFirst || turnId === undefined) return node;
    firstAnswers.set(turnId, node);
    const end = ends.get(turnId);
    if (turn === undefined && end !== undefined) addEnd(node, end);
    return node;
  }

  /**
   * Shows how a turn ended: in the live view, at the answer that follows, or as a message of its
   * own.
   */
  function showEnd(ended: TurnEnd, { text, at }: Said) {
    const { turn, answers } = ended;
    const running = turns.get(turn);
    const answered = firstAnswers.get(turn);
    if (running !== undefined && answers > 0) return running.ended(ended);
    if (answers > 0)
      return answered === undefined ? ends.set(turn, ended) : addEnd(answered, ended);
    if (over.has(turn)) return;
    endTurn(turn);
    waiting.hidden = true;
    const node = agentMessage(text, at);
    addEnd(node, ended);
    said.append(node);
  }

  /** Adds what the live view of the turn showed. */
  function addEnd(node: HTMLElement, { turn, tools, kind }: TurnEnd) {
    if (node.querySelector('.tools') === null)
      node.prepend(createToolSteps(turn, loadTurn, tools).node);
    if (kind !== 'stopped' || node.querySelector('.activity') !== null) return;
    node.querySelector('footer')?.before(element('p', { className: 'activity' }, t`Stopped.`));
  }

  function showLive(delta: LiveDelta) {
    const { turnId, phase, result } = delta;
    if (over.has(turnId)) return;
    waiting.hidden = true;
    const turn = turns.get(turnId) ?? startTurn(turnId);
    turn.isStale = false;
    turn.apply(delta);
    if (phase !== 'ended' || result === undefined || result.answers > 0) return;
    turn.close();
    endTurn(turnId);
    said.append(turn.node);
  }

  function startTurn(turnId: string) {
    dropAgain();
    const turn: Running = createLiveTurn(turnId, { keepPlace, loadTurn });
    turns.set(turnId, turn);
    live.append(turn.node);
    return turn;
  }

  function endTurn(turnId: string) {
    turns.get(turnId)?.node.remove();
    turns.delete(turnId);
    over.add(turnId);
  }

  function dropPending(clientId: string) {
    pending.get(clientId)?.node.remove();
    pending.delete(clientId);
  }

  function dropStale() {
    for (const [turnId, turn] of turns) {
      if (!turn.isStale) continue;
      turn.node.remove();
      turns.delete(turnId);
    }
    tellState();
  }

  return {
    node: element('div', { className: 'messages' }, said, live, waiting, unsent),
    isEmpty: () => known.size + turns.size + pending.size === 0,
    show(event: ChatEvent) {
      keepPlace(() => (event.type === 'said' ? showSaid(event) : showLive(event)));
      tellState();
    },
    /** Live updates start again from an empty text. */
    connected() {
      for (const turn of turns.values()) {
        turn.restart();
        turn.isStale = true;
      }
      if (turns.size > 0) setTimeout(dropStale, STALE_MS);
    },
    addUnsent({ clientId, text, press, files, amends }: Unsent) {
      if (amends?.kind === 'again') return;
      if (amends !== undefined) {
        changes.set(amends.id, amends);
        return own.get(amends.id)?.waits(amends);
      }
      if (press !== undefined) choices.pressed(press);
      const message = unsentMessage(text, showFiles(files));
      pending.set(clientId, message);
      unsent.append(message.node);
    },
    stillUnsent({ clientId, amends }: Unsent, reason: string) {
      if (amends !== undefined) return own.get(amends.id)?.waits(amends, reason);
      pending.get(clientId)?.wait(reason);
    },
    refused({ clientId, text, press, amends }: Unsent, reason: string) {
      if (amends?.kind === 'again') return refuseAgain(reason);
      if (amends !== undefined) {
        changes.delete(amends.id);
        return own.get(amends.id)?.refused(amends, text, reason);
      }
      if (press !== undefined) choices.released(press);
      pending.get(clientId)?.refuse(reason, () => {
        dropPending(clientId);
        onTakeBack(text);
      });
    },
  };
}
