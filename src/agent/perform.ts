// Performs the work of a phase and advances the state. The work of each phase ends with a signal of
// that phase; anything else does not type-check.

import type { Cue, Main } from '../features/modes/mode.ts';
import { NO_RIGHTS } from '../kernel/access/rights.ts';
import type { DocumentReading } from '../kernel/media/media.ts';
import {
  type AttachedMedia,
  type Attachment,
  attachmentTitle,
  isImage,
  shortIdOf,
} from '../kernel/message/attachment.ts';
import { ProviderError } from '../kernel/message/errors.ts';
import type { MessageId } from '../kernel/message/ids.ts';
import { sentNote } from '../kernel/message/late.ts';
import type { AgentEvent } from '../kernel/message/message.ts';
import type { UserEntry } from '../kernel/message/transcript.ts';
import { wrapUntrusted } from '../kernel/message/untrusted.ts';
import { joinTexts, wordsOf } from '../kernel/turns/rules/coalesce.ts';
import { newBoundary } from '../lib/boundary.ts';
import { headOf } from '../lib/text/cut.ts';
import type { TurnMessage } from './agent.ts';
import { clearOldResults, compactThread, LARGER_WINDOW, maySumUp } from './compact.ts';
import { expandFor } from './compactor.ts';
import { executeCalls, settleInterruptedCalls } from './execute.ts';
import { expectedTokens, mayAct, planCall } from './model-call.ts';
import { hardTokens } from './rules/compaction.ts';
import { documentSize, documentText } from './rules/document-text.ts';
import { requestedSkillText } from './rules/prompt.ts';
import { type ModelSize, requestedSkillTokens } from './rules/tokens.ts';
import { advance } from './rules/turn.ts';
import {
  blockedRounds,
  isGrownBy,
  lastWordOf,
  takenUp,
  tokensSpent,
} from './rules/turn-closing.ts';
import type {
  Ask,
  LiveState,
  NonEmpty,
  Resumption,
  SignalOf,
  StateOf,
  TurnState,
} from './rules/turn-state.ts';
import { countSent, streamAnswer } from './stream.ts';
import { finalizeTurn } from './take-answer.ts';
import type { ModelCall, TurnContext } from './turn-context.ts';

export async function* perform(
  turn: TurnContext,
  state: LiveState,
): AsyncGenerator<AgentEvent, TurnState, void> {
  const { limits } = turn;
  switch (state.phase) {
    case 'preparing':
      return advance(state, await prepareTurn(turn), limits);
    case 'waiting':
      return advance(state, await wait(turn, state), limits);
    case 'routing':
      return advance(state, yield* routeTurn(turn, state), limits);
    case 'compacting':
      return advance(state, yield* compactThread(turn, state), limits);
    case 'streaming':
      return advance(state, yield* streamAnswer(turn, state), limits);
    case 'executing':
      return advance(state, yield* executeCalls(turn, state), limits);
    case 'finalizing':
      return advance(state, await finalizeTurn(turn, state), limits);
  }
}

async function wait(
  turn: TurnContext,
  { delayMs }: StateOf<'waiting'>,
): Promise<SignalOf<'waiting'>> {
  if (delayMs > 0) await turn.clock.sleep(delayMs, turn.signal);
  const isSteered = await recordSteering(turn);
  const elapsedMs = turn.time.elapsedMs();
  return { type: 'resumed', elapsedMs, ...(isSteered ? { isSteered } : {}) };
}

// Routing: chooses the model and checks whether the thread fits it. Where several models share the
// work, the mode first decides who speaks.

/** @throws ProviderError also where another model than the main one could not be called */
async function* routeTurn(
  turn: TurnContext,
  { ask }: StateOf<'routing'>,
): AsyncGenerator<AgentEvent, SignalOf<'routing'>, void> {
  const { mode } = turn;
  const closing = ask.kind === 'conclude' ? await mode?.closing?.() : undefined;
  if (closing !== undefined) return yield* recorded(turn, closing);
  if (mode?.cue === undefined || !mayAct({ ask, cue: undefined })) {
    return routed(turn, ask, undefined);
  }
  const cue = yield* mode.cue(ask, turn.signal);
  if (cue.kind !== 'main') return yield* recorded(turn, cue);
  return routed(turn, ask, cue);
}

/** Loaded with the first decision of a mode. */
async function* recorded(turn: TurnContext, cue: Exclude<Cue, Main>) {
  const { recordCue } = await import('../features/modes/record-cue.ts');
  return yield* recordCue(turn, cue);
}

function routed(turn: TurnContext, ask: Ask, said: Main | undefined): SignalOf<'routing'> {
  const [{ message }] = turn.input.messages;
  const chosen = turn.input.settings.model ?? turn.models.defaultModel;
  const model = turn.spending.modelFor(message, chosen, (name) => turn.models.fast(name));
  const asked = { model, ask, cue: said?.main };
  const planned = planCall(turn, asked);
  const call = clearOldResults(turn, planned) ? planCall(turn, asked) : planned;
  if (call.leftOut.tools > 0) turn.tellOwner(smallWindowText(call));
  const { inputTokens, outputTokens } = call.budget;
  const input = expectedTokens(turn, call);
  const size = input <= limitOf(turn, call) ? 'fits' : 'too_large';
  const expected = Math.min(input, inputTokens) + outputTokens;
  const taken = said?.tokens === undefined ? {} : { tokens: said.tokens };
  return { type: 'routed', model, size, expectedTokens: expected, cue: said?.main, ...taken };
}

function smallWindowText({ handle, contextTokens }: ModelCall): string {
  const size = contextTokens.toLocaleString('en-US');
  return `The context window of ${handle.name} holds ${size} tokens. To keep the conversation in view, this model is offered fewer tools and a shorter prompt. ${LARGER_WINDOW} /context shows what fills it.`;
}

/** From this size on a call waits, once, for a summary of its conversation. */
function limitOf(turn: TurnContext, call: ModelCall): number {
  return maySumUp(turn) && !turn.lastCall.hasWaited
    ? hardTokens(turn.settings.compaction, call)
    : call.budget.inputTokens;
}

// Preparing: reads what is recorded of the turn, records the messages it answers, and determines
// where to resume. A turn with a recorded end is over: its answer is reused.

async function prepareTurn(turn: TurnContext): Promise<SignalOf<'preparing'>> {
  const { input, thread, sessions, prepared } = turn;
  const asked = input.messages.map(({ message }) => message.id);
  const own = await sessions.turn(input.session, input.turnId);
  const { history, standing, working } = prepared;
  thread.open(
    history,
    own,
    asked,
    [standing, working].some((note) => note?.isForeign),
  );
  const { end } = thread;
  if (end !== undefined) {
    const { outcome: kind, answers, throughSeq } = end;
    return { type: 'already_over', outcome: { kind, answers, throughSeq } };
  }
  const texts = joinTexts(
    input.messages.map(({ message }) => message),
    newBoundary,
    (message) => sentNoteIn(turn, message),
  );
  await recordMessages(turn, input.messages, texts);
  // The messages may have started a new file, or the turn may continue in an old one.
  const window = await sessions.load(input.session);
  if (!isGrownBy(input.turnId, prepared.window, window)) thread.reopen(takenUp(window));
  await expandFor(turn);
  // The rights of the senders of those messages are unknown now.
  if (thread.hasOthersThan(asked)) turn.rights.narrow(NO_RIGHTS);
  const calls = thread.answers.flatMap(({ toolCalls }) => toolCalls);
  return {
    type: 'prepared',
    rounds: thread.answers.length,
    tokens: tokensSpent(thread.own),
    messagesSent: countSent(calls, thread.results, turn.toolbox),
    blockedRounds: blockedRounds(thread.rounds),
    resumption: await resumptionOf(turn),
  };
}

/**
 * Records messages that arrived during the turn; they join it before the next model call. Returns
 * whether there were any.
 */
async function recordSteering(turn: TurnContext): Promise<boolean> {
  const steered = await turn.input.steer();
  await recordMessages(
    turn,
    steered,
    steered.map(({ message }) => {
      const note = sentNoteIn(turn, message);
      const words = wordsOf(message, newBoundary);
      return note === undefined ? words : `${note} ${words}`;
    }),
  );
  return steered.length > 0;
}

function sentNoteIn(
  { input, settings, clock }: TurnContext,
  message: Parameters<typeof sentNote>[0],
) {
  return sentNote(message, clock.now(), input.person.timeZone ?? settings.timeZone);
}

/** Skips messages that an earlier attempt recorded. */
async function recordMessages(
  turn: TurnContext,
  messages: readonly TurnMessage[],
  texts: readonly string[],
): Promise<void> {
  const { thread, clock, rights } = turn;
  const at = clock.now();
  for (const each of messages) rights.narrow(each.rights);
  const fresh = messages.flatMap((each, index) =>
    thread.hasMessage(each.message.id) ? [] : [{ each, words: texts[index] ?? each.message.text }],
  );
  const skills = await requestedSkills(
    turn,
    fresh.map(({ each }) => each),
  );
  const entries = await Promise.all(
    fresh.map(({ each, words }) => {
      const own = skills.get(each.message.id);
      return entryOf(turn, each, own === undefined ? words : `${words}\n\n${own}`, at);
    }),
  );
  // The message bus keeps the inbound messages until the end of the turn is on the disk.
  await thread.record(entries, { durable: false });
  for (const { seq, message } of messages) {
    thread.consumed(seq);
    thread.requestedAt = message.receivedAt;
  }
}

/** Enough to recognise the text of a skill. */
const KNOWN_BY_CHARS = 300;

/** By message, the text of the skills that it names and that are not in view yet. */
async function requestedSkills(
  turn: TurnContext,
  messages: readonly TurnMessage[],
): Promise<ReadonlyMap<MessageId, string>> {
  const { thread } = turn;
  const texts = new Map<MessageId, string>();
  const isKnown = (text: string, said: string) => said.includes(headOf(text, KNOWN_BY_CHARS));
  for (const { message, isForeign } of messages) {
    if (isForeign) continue;
    const told = [...texts.values(), message.text].join('\n');
    const wanted = (await turn.requestedSkills(message.text)).filter(
      ({ text }) =>
        !isKnown(text, told) &&
        !thread.shown.some((entry) => 'text' in entry && isKnown(text, entry.text)),
    );
    if (wanted.length === 0) continue;
    if (!mayReadSkills(turn)) return texts;
    const each = Math.floor(requestedSkillTokens(sizeOf(turn)) / wanted.length);
    texts.set(message.id, wanted.map((skill) => requestedSkillText(skill, each)).join('\n\n'));
  }
  return texts;
}

const mayReadSkills = ({ toolbox, rights }: TurnContext) =>
  toolbox.offered(rights.current).specs.some(({ name }) => name === 'read_skill');

/** An unknown model is reported by its call. */
function sizeOf({ models, input, settings }: TurnContext): ModelSize {
  const contextTokens = settings.maxContextTokens;
  try {
    const handle = models.resolve(input.settings.model ?? models.defaultModel);
    return { ...handle, contextTokens: Math.min(handle.contextTokens, contextTokens) };
  } catch (error) {
    if (error instanceof ProviderError) return { contextTokens, local: false };
    throw error;
  }
}

async function entryOf(
  turn: TurnContext,
  { seq, message, isForeign, rights }: TurnMessage,
  words: string,
  at: number,
): Promise<UserEntry> {
  const { text, media } = await readAttached(turn, message.attachments);
  const isOthers = rights.trustsFiles !== true && (text !== '' || media.some(isImage));
  return {
    role: 'user',
    turnId: turn.input.turnId,
    messageId: message.id,
    seq,
    text: text === '' ? words : `${words}\n\n${text}`,
    ...(media.length === 0 ? {} : { media }),
    ...(isForeign || isOthers ? { isForeign: true } : {}),
    at,
  };
}

async function resumptionOf(turn: TurnContext): Promise<Resumption> {
  const lastWord = lastWordOf(turn.thread.own);
  if (typeof lastWord === 'object') return { kind: 'unsupported', sentences: lastWord.unsupported };
  if (lastWord !== undefined) return { kind: lastWord === 'draft' ? 'drafted' : 'answered' };
  const [first, ...rest] = await settleInterruptedCalls(turn);
  if (first === undefined) return { kind: 'ask' };
  const calls: NonEmpty<typeof first> = [first, ...rest];
  return { kind: 'calls', calls };
}

// The attachments of a message for the model: images as they are, the beginning of a document as
// untrusted content, and a line for everything that is not read.

type Document = { readonly attachment: Attachment; readonly attached: AttachedMedia };

/** Further documents of one message are only named. */
const MAX_DOCUMENTS = 10;
/** Limit of all documents of one message, in multiples of `maxInlineChars`. */
const MAX_INLINE_SHARES = 3;
const NO_SOUND: readonly Attachment['kind'][] = ['audio', 'voice', 'video', 'video_note'];
const SOUND_MIME = /^(?:audio|video)\//;

/**
 * Never throws: an unreadable attachment only lacks its own text. `text`: added below that of the
 * message; empty where there is nothing to add.
 */
async function readAttached(turn: TurnContext, attachments: readonly Attachment[] = []) {
  const stored = attachments.flatMap((attachment): readonly Document[] => {
    const { content, kind, name, mimeType = 'application/octet-stream' } = attachment;
    if (content.kind !== 'stored') return [];
    const named = name === undefined ? {} : { name };
    return [{ attachment, attached: { media: content.media, kind, mimeType, ...named } }];
  });
  // Transcripts are already part of the message text.
  const documents = stored.filter(
    ({ attachment, attached }) => !isImage(attached) && attachment.spoken === undefined,
  );
  const readings = await Promise.all(
    documents.slice(0, MAX_DOCUMENTS).map((document) => readingOf(turn, document)),
  );
  let room = turn.settings.maxInlineChars * MAX_INLINE_SHARES;
  const texts = documents.map((document, index) => {
    const most = Math.min(turn.settings.maxInlineChars, room);
    const { text, shownChars } = worded(document, readings[index], most);
    room -= shownChars;
    return text;
  });
  return { text: texts.join('\n\n'), media: stored.map(({ attached }) => attached) };
}

async function readingOf(
  { reader, signal, log }: TurnContext,
  { attachment, attached }: Document,
): Promise<DocumentReading> {
  if (NO_SOUND.includes(attachment.kind) || SOUND_MIME.test(attached.mimeType)) {
    return { kind: 'unreadable', reason: 'audio and video are not read' };
  }
  try {
    return await reader.document(attached.media, signal);
  } catch (error) {
    if (signal.aborted) return { kind: 'unreadable', reason: 'reading it was stopped' };
    log.warn('document not read', { error });
    return { kind: 'unreadable', reason: 'it cannot be read at the moment' };
  }
}

function worded(
  { attachment, attached }: Document,
  reading: DocumentReading | undefined,
  mostChars: number,
): { readonly text: string; readonly shownChars: number } {
  const title = attachmentTitle(attachment);
  const id = shortIdOf(attached);
  if (reading === undefined) {
    return { text: `[${title}: not read yet; read_document reads it, id ${id}]`, shownChars: 0 };
  }
  if (reading.kind === 'unreadable') {
    return { text: `[${title} was not read: ${reading.reason}]`, shownChars: 0 };
  }
  const whole = documentText(reading.sections);
  const shown = headOf(whole, mostChars);
  const more = shown.length < whole.length || reading.isCut;
  const first = `the first ${shown.length.toLocaleString('en-US')} characters follow`;
  const how = more
    ? `${shown === '' ? 'not shown here' : first}, read_document reads on`
    : 'its text follows';
  const head = `[${title}, id ${id}: ${documentSize(reading)}; ${how}]`;
  if (shown === '') return { text: head, shownChars: 0 };
  const wrapped = wrapUntrusted(`text of document ${id}`, [{ text: shown }], newBoundary());
  return { text: `${head}\n${wrapped}`, shownChars: shown.length };
}
