// What an answer says it did: sentences in which the writer tells of an effect as done. Looks at form
// only: questions, offers, plans, negations, quotes, code, drafts of letters and what others did are no
// claims. Rather misses one than doubts an honest answer.

import type { ToolAccess } from '../../../kernel/access/rights.ts';
import { headOf } from '../../../lib/text/cut.ts';
import {
  CLAIM_PATTERNS,
  type ClaimKind,
  INNER_DOT,
  NOT_ABOUT_NOW,
  NOT_SAID_AS_DONE,
} from './claims-words.ts';

export type Claim = {
  readonly kind: ClaimKind;
  /** As written, cut. */
  readonly sentence: string;
};

/** A call of the turn that did something, or waits for somebody to allow it. */
export type Evidence = { readonly tool: string; readonly access: ToolAccess };

const MAX_SENTENCE_CHARS = 200;
/** Longer answers are looked at in part: their end is where things done are told. */
const MAX_TEXT_CHARS = 20_000;

/** Programs can do all of it, and so can whoever works for the agent. */
const DOES_ANYTHING: readonly ToolAccess[] = ['execute'];
const HELPERS = ['spawn'];
const FOREIGN_TOOL = /^mcp_/;
/** Whatever else a tool of such a name may do. */
const NAMED: Readonly<Record<ClaimKind, RegExp>> = {
  sent: /send|mail|message|post|reply|notify|forward/,
  saved: /save|write|remember|note|store|create|add/,
  booked: /book|order|pay|buy|purchase|reserve|transfer/,
  scheduled: /schedul|remind|calendar|event|alarm/,
  changed: /delete|remove|cancel|update|edit|move|change/,
  ran: /run|exec|test|script|build|shell/,
};
const DONE_BY: Readonly<Record<ClaimKind, readonly ToolAccess[]>> = {
  sent: ['send', 'say'],
  saved: ['write', 'rules', 'schedule'],
  booked: [],
  scheduled: ['schedule', 'write', 'rules'],
  changed: ['write', 'rules', 'schedule'],
  ran: [],
};

/** Whether such a call can be what a claim of this kind tells of. */
export function supports({ tool, access }: Evidence, kind: ClaimKind): boolean {
  if (DOES_ANYTHING.includes(access) || HELPERS.includes(tool)) return true;
  if (FOREIGN_TOOL.test(tool)) return access !== 'read';
  if (DONE_BY[kind].includes(access)) return true;
  return access !== 'read' && access !== 'web' && NAMED[kind].test(tool);
}

/** Told to the model that wrote such sentences. `mayAct`: it can do now what it said was done. */
export function correctionNote(sentences: readonly string[], mayAct: boolean): string {
  const said = sentences.map((sentence) => JSON.stringify(sentence)).join(', ');
  const now = mayAct ? 'If one of your tools can do it, do it now. Otherwise write' : 'Write';
  return `[Your answer says ${said}, and no tool did that in this turn; the answer was withdrawn. ${now} the whole answer anew, and tell truly what was done and what was not. What was done in an earlier turn, tell as such.]`;
}

/** One for each kind, the first of it. */
export function claimsOf(markdown: string): readonly Claim[] {
  const found = new Map<ClaimKind, Claim>();
  for (const sentence of sentencesOf(ownWords(markdown.slice(-MAX_TEXT_CHARS)))) {
    for (const kind of kindsIn(sentence)) {
      if (!found.has(kind)) found.set(kind, { kind, sentence: cut(sentence) });
    }
  }
  return [...found.values()];
}

const cut = (sentence: string) => headOf(sentence.replaceAll(INNER_DOT, '.'), MAX_SENTENCE_CHARS);

function kindsIn(sentence: string): readonly ClaimKind[] {
  if (/[?？]\s*$/.test(sentence) || NOT_ABOUT_NOW.test(sentence)) return [];
  return CLAIM_PATTERNS.filter(({ pattern }) => {
    const match = pattern.exec(sentence);
    return match !== null && !NOT_SAID_AS_DONE.test(sentence.slice(0, match.index));
  }).map(({ kind }) => kind);
}

const CODE_BLOCK = /^ {0,3}(`{3,}|~{3,})[^\n]*\n[\s\S]*?(?:^ {0,3}\1[^\n]*$|(?![\s\S]))/gm;
const QUOTE_LINE = /^ {0,3}>.*$/gm;
const QUOTED = /"[^"\n]{1,500}"|“[^”\n]{1,500}”|„[^“”\n]{1,500}[“”]|«[^»\n]{1,500}»/g;
/** What stands for a name of a file. */
const CODE = /`[^`\n]+`/g;
const DOT_IN_WORD = /(?<=[\p{L}\p{N}_-])\.(?=[\p{L}\p{N}])/gu;
const MARKS = /[*_~]{1,3}|^[^\S\n]*(?:[-+•]|\d+[.)]|#{1,6})\s+/gm;
/** A letter that is shown, up to a line. */
const LETTER =
  /^(?:dear|hi|hello|hey|hallo|liebe[rs]?|sehr geehrte[rs]?|guten (?:tag|morgen)|bonjour|chère?|madame|monsieur|hola|estimad[oa]s?|querid[oa]s?|ciao|gentile|car[oaie]|buongiorno|prezad[oa]s?|olá|car[oa]s?)\s[^\n]{0,60},[ \t]*$[\s\S]*?(?:^[^\S\n]*(?:-{3,}|\*{3,})[^\S\n]*$|(?![\s\S]))/gim;
const DRAFT_INTRODUCED =
  /^[^\n]*(?:draft|entwurf|vorschlag|suggest|brouillon|projet de|proposition|borrador|propuesta|bozza|proposta|rascunho|example|beispiel|exemple|ejemplo|esempio|exemplo|version|template|vorlage|modèle)[^\n]*:[ \t]*\n[\s\S]*?(?:^[^\S\n]*(?:-{3,}|\*{3,})[^\S\n]*$|(?![\s\S]))/gim;

function ownWords(markdown: string): string {
  return markdown
    .replace(CODE_BLOCK, '\n')
    .replace(QUOTE_LINE, '')
    .replace(LETTER, '\n')
    .replace(DRAFT_INTRODUCED, '\n')
    .replace(QUOTED, '“…”')
    .replace(CODE, '¤')
    .replace(MARKS, '')
    .replaceAll('’', "'")
    .replace(DOT_IN_WORD, INNER_DOT);
}

function sentencesOf(text: string): readonly string[] {
  return text
    .split(/(?<=[.!?…？！。])\s+|\n+|(?<=[;:])\s+|\s[–—]\s/)
    .map((sentence) => sentence.trim())
    .filter((sentence) => sentence !== '');
}
