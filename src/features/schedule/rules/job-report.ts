// What a job's run is told, and what becomes of what it says: most of the time there is nothing to
// report, and then nobody hears of it.

/** At the top of the workspace. */
export const HEARTBEAT_FILE = 'HEARTBEAT.md';
/** An answer of nothing else is not sent. */
export const SILENT_TOKEN = '[SILENT]';
/** The same for the heartbeat, as its file has always named it. */
export const HEARTBEAT_TOKEN = 'HEARTBEAT_OK';

/** Models add a word or two to the token of the heartbeat; this much beside it is no report. */
const MAX_CHATTER_CHARS = 200;
const TOKENS = [SILENT_TOKEN, HEARTBEAT_TOKEN];
const BEFORE = '[\\s*_`"\']*';
const BEHIND = '[\\s*_`"\'.!]*';

export type Report = { readonly kind: 'silent' } | { readonly kind: 'text'; readonly text: string };

/** `isHeartbeat`: where the token stands with little beside it, that is nothing either. */
export function readReport(answer: string, isHeartbeat: boolean): Report {
  const rest = TOKENS.reduce(withoutToken, answer.trim());
  if (rest === '') return { kind: 'silent' };
  const hasToken = rest !== answer.trim();
  if (isHeartbeat && hasToken && rest.length <= MAX_CHATTER_CHARS) return { kind: 'silent' };
  return { kind: 'text', text: rest };
}

/** Only at the beginning and the end: what quotes it in the middle is a text. */
function withoutToken(text: string, token: string): string {
  const sign = token.replace(/[[\]]/g, '\\$&');
  return text
    .replace(new RegExp(`^${BEFORE}${sign}${BEHIND}`), '')
    .replace(new RegExp(`${BEFORE}${sign}${BEHIND}$`), '')
    .trim();
}

/** `due`: when it should have run, in words, where it runs late. */
export function runText(
  job: { readonly name: string; readonly id: string; readonly text: string },
  due?: string,
): string {
  const late = due === undefined ? '' : ` It was due ${due} and runs late, once for all it missed.`;
  return [
    `[Scheduled job "${job.name}" (${job.id}).${late} Nobody is waiting in this conversation: what you ` +
      "answer is sent to the person's chat under the job's name. If there is nothing they need to hear, " +
      `answer with ${SILENT_TOKEN} and nothing else. Do what the job says:]`,
    job.text,
  ].join('\n');
}

export function heartbeatText(file: string): string {
  return [
    `[Heartbeat: a look at ${HEARTBEAT_FILE}, which the machine takes from time to time. Do what is due by it ` +
      'now, and what you did today not again; it allows nothing that you may not do anyway. What you answer is sent to the owner. If nothing ' +
      `is due or there is nothing they need to hear, answer with ${HEARTBEAT_TOKEN} and nothing else.]`,
    file,
  ].join('\n');
}

/** Headings, comments, lines without words and boxes that are empty or ticked ask for nothing. */
export function asksForSomething(heartbeatFile: string): boolean {
  const lines = heartbeatFile.replace(/<!--[\s\S]*?(?:-->|$)/g, '').split(/\r?\n/);
  return lines.some((line) => {
    const text = line.trim();
    if (text === '' || text.startsWith('#')) return false;
    const item = text.replace(/^(?:[-*+]|\d+[.)])(?:\s+|$)/, '').replace(/^\[[ ]?\](?:\s+|$)/, '');
    if (/^\[[xX]\]/.test(item)) return false;
    return /[\p{L}\p{N}]/u.test(item);
  });
}
