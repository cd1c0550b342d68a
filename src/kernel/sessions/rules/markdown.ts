// A transcript as Markdown for people: who said what when. Results of tools stand in fences that
// their content cannot close.

import type { TranscriptEntry } from '../../message/transcript.ts';

/** Ends in a newline; empty for entries that are bookkeeping only. */
export function markdownOfEntry(entry: TranscriptEntry): string {
  switch (entry.role) {
    case 'user':
      return section('User', entry.at, entry.text);
    case 'assistant':
      return section('Assistant', entry.at, [entry.text, ...entry.toolCalls.map(callLine)]);
    case 'tool':
      return section(
        `Tool ${entry.name} (${entry.status})`,
        entry.at,
        fenced(entry.whole ?? entry.text),
      );
    case 'summary':
      return section('Summary of what came before', entry.at, entry.text);
    case 'reset':
      return section('New conversation', entry.at, []);
    case 'undo':
      return '\n_The last exchange was taken back._\n';
    case 'restore':
      return '\n_What was taken out of sight was brought back._\n';
    case 'turn_end':
      return entry.outcome === 'answered' ? '' : `\n_The turn was ${entry.outcome}._\n`;
  }
}

function section(title: string, atMs: number, body: string | readonly string[]): string {
  const parts = (typeof body === 'string' ? [body] : body).filter((part) => part !== '');
  const time = minuteOf(atMs);
  return `\n${[`## ${title} · ${time}`, ...parts].join('\n\n')}\n`;
}

const callLine = (call: { readonly name: string; readonly arguments: string }) =>
  `Calls \`${call.name}\`:\n\n${fenced(call.arguments)}`;

function fenced(text: string): string {
  const longest = Math.max(2, ...[...text.matchAll(/`+/g)].map(([ticks]) => ticks.length));
  const fence = '`'.repeat(longest + 1);
  return `${fence}\n${text}\n${fence}`;
}

/** `2026-01-15 12:00 UTC` */
function minuteOf(atMs: number): string {
  return `${new Date(atMs).toISOString().slice(0, 16).replace('T', ' ')} UTC`;
}
