// Whose words are said in a sound: the person's own in a voice message of theirs, somebody else's in
// a recording and in whatever was passed on.

import { type Attachment, OWN_SPEECH_KINDS } from './attachment.ts';
import { attachmentTitle } from './attachment-words.ts';
import type { InboundMessage } from './message.ts';

export type OthersSpeech = { readonly title: string; readonly spoken: string };

export type PartedSpeech = {
  /** With the words that are the person's own. */
  readonly own: readonly Attachment[];
  readonly others: readonly OthersSpeech[];
};

/** @param isOwn the message as a whole is the person's own */
export function partSpeech(attachments: readonly Attachment[] = [], isOwn: boolean): PartedSpeech {
  const others: OthersSpeech[] = [];
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
