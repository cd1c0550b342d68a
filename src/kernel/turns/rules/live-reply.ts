// When a running turn is shown in a chat whose platform supports edits: a pure decision over the
// state of one draft. The I/O is in kernel/delivery/live-replies.ts.

import { type Attachment, attachmentTitle, OWN_SPEECH_KINDS } from '../../message/attachment.ts';
import type { InboundMessage } from '../../message/message.ts';

/** A short answer needs no draft: it arrives before one would help. */
const DRAFT_DELAY_MS = 1000;
/** People look at the chat header about this long after they wrote. */
export const TYPING_DELAY_MS = 300;
/** A first draft of a few letters is only a distraction. */
const MIN_DRAFT_CHARS = 12;

export type DraftState = {
  /** Monotonic milliseconds at which the turn was first seen. */
  readonly startedAt: number;
  readonly lastEditAt: number | undefined;
  /** What the chat shows now. */
  readonly shown: string;
  readonly isPlaced: boolean;
};

type DraftStep =
  | { readonly kind: 'idle' }
  | { readonly kind: 'wait'; readonly ms: number }
  | { readonly kind: 'place' }
  | { readonly kind: 'edit' };

/** The next step of a draft towards `wanted`. Only one step runs at a time. */
export function nextDraftStep(
  state: DraftState,
  wanted: string,
  minIntervalMs: number,
  now: number,
): DraftStep {
  if (wanted === state.shown || wanted.trim().length < MIN_DRAFT_CHARS) return { kind: 'idle' };
  if (!state.isPlaced) {
    const waitMs = state.startedAt + DRAFT_DELAY_MS - now;
    return waitMs > 0 ? { kind: 'wait', ms: waitMs } : { kind: 'place' };
  }
  const waitMs = (state.lastEditAt ?? state.startedAt) + minIntervalMs - now;
  return waitMs > 0 ? { kind: 'wait', ms: waitMs } : { kind: 'edit' };
}

/** The draft's text: the answer so far, and below it the agent's activity. */
export function draftText(markdown: string, activity: string | undefined): string {
  if (activity === undefined) return markdown;
  return markdown === '' ? `_${activity}_` : `${markdown}\n\n_${activity}_`;
}

// Whose speech an audio attachment contains: the person's own in their voice message, somebody
// else's in a recording and in everything forwarded.

/**
 * `own`: with the transcripts of the person's own speech.
 * @param isOwn the message as a whole is the person's own
 */
export function partSpeech(attachments: readonly Attachment[] = [], isOwn: boolean) {
  const others: { title: string; spoken: string }[] = [];
  const own = attachments.map((attachment): Attachment => {
    const { spoken, ...rest } = attachment;
    if (spoken?.kind !== 'words') return attachment;
    if (isOwn && OWN_SPEECH_KINDS.includes(attachment.kind)) return attachment;
    const { kind, content } = rest;
    others.push({ title: attachmentTitle({ kind, content }), spoken: spoken.text });
    return rest;
  });
  return { own, others };
}

/** Whether the person spoke rather than wrote. */
export function isSpoken({ attachments = [], text }: InboundMessage): boolean {
  const isVoice = attachments.some(
    ({ kind, spoken }) => OWN_SPEECH_KINDS.includes(kind) && spoken?.kind === 'words',
  );
  return isVoice && text.trim() === '';
}
