// The runner in one turn: which results it digests, within its own budget, and what becomes of them. What
// it does not manage, the main model is shown as ever.

import type { CallReport } from '../../agent/call-report.ts';
import { canReadBack } from '../../agent/long-results.ts';
import { ownWords } from '../../agent/rules/context-pack.ts';
import { textTokens } from '../../agent/rules/tokens.ts';
import { SpendingRefusedError } from '../../agent/spending.ts';
import type { ToolCall } from '../../kernel/message/transcript.ts';
import { unwrapped, wrapUntrusted } from '../../kernel/message/untrusted.ts';
import { resultIdOf } from '../../kernel/sessions/rules/earlier.ts';
import { newBoundary } from '../../lib/boundary.ts';
import { shortened } from '../../lib/text/cut.ts';
import { amountOf } from '../spending/rules/spending.ts';
import { payerOf, type RoleAnswer } from './ask-role.ts';
import { digest, type StoredResult } from './digest.ts';
import type { TurnMode } from './mode.ts';
import type { DelegationDeps } from './mode-deps.ts';
import type { ModeTurn } from './modes.ts';
import type { RoleModel } from './role-health.ts';
import { degradedNotice } from './role-probes.ts';

/** What the model asked for to the letter, and what is no result of a tool. */
const AS_IT_IS = ['read_result', 'read_skill', 'spawn', 'ask_user', 'specialist'];
/** At the beginning of the runner's answer: the result has to be seen as it is. */
const VERBATIM = '[VERBATIM]';
const MICROS = 1_000_000;

export function digestsOf(
  turn: ModeTurn,
  who: RoleModel,
  deps: DelegationDeps,
): Required<Pick<TurnMode, 'shown' | 'cue'>> {
  const settings = deps.settings();
  const spent = { tokens: 0, micros: 0 };
  /** By calls that are under way: results of one round are digested side by side. */
  const reserved = { tokens: 0, micros: 0 };
  const told: string[] = [];

  function charge({ usage, text, model }: RoleAnswer, askedTokens: number): void {
    const price = deps.priceOf(who.model) ?? deps.priceOf(model);
    const { tokens, micros } = amountOf(price, {
      input: usage?.inputTokens ?? askedTokens,
      output: usage?.outputTokens ?? textTokens(text),
      cached: usage?.cachedTokens ?? 0,
    });
    spent.tokens += tokens;
    spent.micros += micros;
  }

  const maySpend = () =>
    spent.tokens + reserved.tokens < settings.tokensPerTurn &&
    (settings.moneyPerTurn === 0 ||
      spent.micros + reserved.micros < settings.moneyPerTurn * MICROS);

  function reserve(askedTokens: number): Disposable | undefined {
    if (!maySpend()) return undefined;
    const most = { input: askedTokens, output: settings.maxTokens };
    const { tokens, micros } = amountOf(deps.priceOf(who.model), most);
    reserved.tokens += tokens;
    reserved.micros += micros;
    return {
      [Symbol.dispose]() {
        reserved.tokens -= tokens;
        reserved.micros -= micros;
      },
    };
  }

  return {
    async *cue() {
      for (const text of told.splice(0)) yield turn.notices.lasting(text);
      return { kind: 'main', main: { tools: 'offered', notes: [] } };
    },
    async shown(call, report, signal) {
      const stored = storedResult(turn, call, report, settings.aboveChars);
      if (stored === undefined || deps.health.isResting(who) || !maySpend()) return report;
      const asked = { ...deps, who, settings, reserve, charge, task: ownWords(turn.thread.own) };
      const text = await digest(turn, stored, asked, signal).catch((error: unknown) => {
        // What the tool did is recorded, whatever becomes of its digest.
        if (error instanceof SpendingRefusedError || signal.aborted) return undefined;
        throw error;
      });
      if (text?.kind === 'failed' && text.isOut) told.push(degradedNotice(who));
      if (text?.kind !== 'digested') return report;
      deps.health.succeeded(who, payerOf(turn));
      const isKept = text.text.startsWith(VERBATIM) || text.text.length >= stored.body.length;
      return isKept ? report : digested(stored, report, text.text);
    },
  };
}

/** Undefined where it stays as it is. */
function storedResult(
  turn: ModeTurn,
  call: ToolCall,
  report: CallReport,
  aboveChars: number,
): StoredResult | undefined {
  const body = report.whole ?? unwrapped(report.text);
  const id = resultIdOf(turn.input.turnId, turn.thread.ordinalOf(call));
  const isShort = body.length <= aboveChars;
  if (isShort || id === undefined || report.media !== undefined) return undefined;
  const { name } = turn.toolbox.bind(call.name, call.arguments);
  if (AS_IT_IS.includes(name) || !canReadBack(turn)) return undefined;
  return { id, call, body, isForeign: report.isForeign === true };
}

function digested(stored: StoredResult, report: CallReport, text: string): CallReport {
  const { id, call, body, isForeign } = stored;
  const size = body.length.toLocaleString('en-US');
  const head = `[digest by another model of result ${id} of ${shortened(call.name, 60)}, ${size} characters; read_result reads it as it is]`;
  const shown = isForeign
    ? wrapUntrusted(`digest of result ${id}`, [{ text }], newBoundary())
    : text;
  return { ...report, text: `${head}\n${shown}`, whole: body };
}
