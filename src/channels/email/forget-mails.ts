// Takes the whole texts, quotes and subjects of a person's mails out of the register, where they hold
// certain words.

import { z } from 'zod';
import type { KeyValueStore } from '../../kernel/bus/store/store.ts';
import type { Holds } from '../../kernel/sessions/rules/forgetting.ts';
import { jsonRow, number, type RowShape, rowShape, text } from '../../lib/json/json.ts';
import type { KnownMail, ThreadRecord } from './mail-records.ts';

const KNOWN = rowShape<KnownMail>({ sender: text, thread: text, level: text });
const SUBJECT = rowShape<SubjectRow>({ subject: text });
const THREAD = rowShape<ThreadRecord>({
  ...{ sender: text, level: text, lastHumanAt: number },
  parent: z.looseObject({ subject: text }),
});

/** `sender`: their address; how many texts went. */
export async function forgetMails(
  state: KeyValueStore,
  sender: string,
  holds: Holds,
): Promise<number> {
  const known = (await state.list('id/')).map(({ value }) => jsonRow(value, KNOWN));
  const theirs = known.flatMap((mail) => (mail?.sender === sender ? (mail.inbound ?? []) : []));
  let texts = 0;
  for (const key of theirs.flatMap((id) => [`text/${id}`, `quote/${id}`])) {
    const value = await state.get(key);
    if (value === undefined || !holds(value)) continue;
    await state.delete(key);
    texts += 1;
  }
  const outgoing = known.flatMap((mail) => (mail?.sender === sender ? (mail.outbound ?? []) : []));
  const mails = theirs.map((id) => `in/${id}`);
  for (const key of [...mails, ...outgoing.map((id) => `out/${id}`)]) {
    texts += await forgetSubject(state, key, SUBJECT, (row) => withoutSubject(row, holds));
  }
  for (const { key, value } of await state.list('thread/')) {
    if (jsonRow(value, THREAD)?.sender !== sender) continue;
    texts += await forgetSubject(state, key, THREAD, (row) => {
      const parent = withoutSubject(row.parent, holds);
      return parent === row.parent ? row : { ...row, parent };
    });
  }
  return texts;
}

/** An answer on its way keeps its subject: every try of it is the same. */
type SubjectRow = { readonly subject: string; readonly isSent?: boolean };

const withoutSubject = <Row extends SubjectRow>(row: Row, holds: Holds): Row =>
  holds(row.subject) && row.isSent !== false ? { ...row, subject: '' } : row;

async function forgetSubject<Row>(
  state: KeyValueStore,
  key: string,
  shape: RowShape<Row>,
  change: (row: Row) => Row,
): Promise<number> {
  const value = await state.get(key);
  const before = value === undefined ? undefined : jsonRow(value, shape);
  const after = before === undefined ? undefined : change(before);
  if (after === undefined || after === before) return 0;
  await state.set(key, JSON.stringify(after));
  return 1;
}
