// A mail as a file (RFC 5322), as mail programs attach and save it: who wrote it to whom and when,
// its text, the names of its files, and the mails attached to it in sections of their own.

import { type ReadMail, readMail } from '../../../lib/mail/parse-mail.ts';
import { mendedMail } from '../../../lib/mail/raw-mail.ts';
import {
  type AttachedPart,
  attachmentNotes,
  MAX_WHOLE_TEXT_CHARS,
} from '../../../lib/mail/rules/attached.ts';
import { headOf, oneLine, shortened, visibleText } from '../../../lib/text/cut.ts';
import { t } from '../../../lib/texts.ts';
import { DAMAGED, DocumentProblem, Sections } from './extract.ts';

const TOO_LARGE = t`this mail is too large, or its parts are too many or nested too deep, to be read`;
/** Mails in mails; deeper ones are only named. */
const MAX_DEPTH = 3;
const MAX_FIELD_CHARS = 2000;

export async function readMailFile(content: Uint8Array) {
  const mails = await mailsIn(content, 0);
  if (mails === undefined) throw new DocumentProblem(TOO_LARGE);
  const sections = new Sections();
  for (const [number, text] of mails.entries()) {
    sections.add(number === 0 ? '' : `attached mail ${number}`, text);
  }
  return sections.reading(DAMAGED);
}

/** Its text, then those of the mails in it; undefined if it breaks a limit. */
async function mailsIn(content: Uint8Array, depth: number): Promise<string[] | undefined> {
  const mended = mendedMail(content);
  if ('gate' in mended) return undefined;
  const isRead = (type: string) => type === 'message/rfc822' && depth < MAX_DEPTH;
  const kept = (type: string) => (isRead(type) ? content.length : 0);
  const mail = await readMail(mended.raw, 'all', kept);
  const unread: AttachedPart[] = [];
  const attached: string[] = [];
  for (const { part, head } of mail.parts) {
    const inner = isRead(part.type) ? await mailsIn(head, depth + 1) : undefined;
    if (inner === undefined) unread.push(part);
    else attached.push(...inner);
  }
  return [textOf(mail, unread), ...attached];
}

function textOf({ plain, html, ...mail }: ReadMail, unread: readonly AttachedPart[]): string {
  const fields = Object.entries({
    ...{ From: mail.from, To: mail.to, Cc: mail.cc, Date: mail.date, Subject: mail.subject },
  })
    .map(([name, value]) => [name, oneLine(visibleText(value))] as const)
    .filter(([, value]) => value !== '')
    .map(([name, value]) => `${name}: ${shortened(value, MAX_FIELD_CHARS)}`);
  const text = plain.trim() === '' ? html : plain;
  const shown = headOf(text, MAX_WHOLE_TEXT_CHARS);
  const cut = shown.length < text.length ? '[truncated]' : '';
  return [fields.join('\n'), shown.trim(), cut, attachmentNotes(unread).join('\n')]
    .filter((block) => block !== '')
    .join('\n\n');
}
