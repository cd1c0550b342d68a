// Carries out the check before a run of a job: a program, a page, a file, or new mails. With the
// limits and rights of the tools that do the same, and without a model. Loaded with the first job
// that has a check.

import { hash, randomUUID } from 'node:crypto';
import { permissionOf, type Rights } from '../../kernel/access/rights.ts';
import type { Kernel } from '../../kernel/feature.ts';
import { ToolError, type ToolFailureKind } from '../../kernel/message/errors.ts';
import type { TurnPerson } from '../../kernel/message/untrusted.ts';
import { BEGUN } from '../../kernel/observe/telemetry.ts';
import { createGuardedFiles } from '../../lib/files/guarded-files.ts';
import { GuardedFileError } from '../../lib/files/guarded-path.ts';
import { jsonRow, number, rowShape, texts } from '../../lib/json/json.ts';
import { headOf } from '../../lib/text/cut.ts';
import { createMinuteText } from '../../lib/time/zone-time.ts';
import { EXECUTOR } from '../../tools/exec/exec.ts';
import { ProgramError } from '../../tools/exec/executor.ts';
import { checkNotes } from '../../tools/files/file-tools.ts';
import { PROVENANCE } from '../../tools/files/provenance.ts';
import { describeFailure } from '../../tools/toolbox.ts';
import { buildWeb, loadPage } from '../../tools/web/web-fetch.ts';
import { openInboxes } from '../mail-bridge/index.ts';
import { type Finding, type Gate, gateNeeds, gateText, type Look } from './rules/gate.ts';
import type { Job } from './rules/job.ts';
import { jobSession } from './settings.ts';

/** Whose job it is, with their rights now. */
export type GateStanding = { readonly rights: Rights; readonly person: TurnPerson };

export type LookAtGate = (
  job: Job & { readonly when: Gate },
  standing: GateStanding,
  signal: AbortSignal,
) => Promise<Look>;

const MAX_FILE_BYTES = 100_000_000;
const MAX_FOUND_CHARS = 8000;
const MAX_REASON_CHARS = 400;
/** Mails that one check compares. */
const MAX_MAILS = 50;
const CLOSED_EXIT = 1;
const FINAL: readonly ToolFailureKind[] = ['permission', 'blocked', 'not_found'];

type Check<Kind extends Gate['kind']> = {
  readonly gate: Extract<Gate, { readonly kind: Kind }>;
  readonly job: Job;
  readonly mark: string | undefined;
  readonly standing: GateStanding;
  readonly signal: AbortSignal;
};

export function openGates(kernel: Kernel): LookAtGate {
  const { live, clock, log } = kernel;
  const executor = kernel.use(EXECUTOR);
  const own = kernel.use(PROVENANCE);
  const { audit } = kernel.measuring;
  const web = buildWeb(live, clock, kernel.readerMemory, kernel.resources);
  const files = createGuardedFiles();
  const inboxes = openInboxes(live, kernel.channels.get);
  const minuteText = createMinuteText();

  async function program({ gate, job, mark, standing, signal }: Check<'program'>): Promise<Look> {
    const { workspace } = live.defaults;
    const timeoutMs = executor.defaultTimeoutMs();
    const request = { work: { kind: 'argv', argv: gate.argv }, folder: '.', timeoutMs } as const;
    if (!executor.isAvailable()) {
      throw new ToolError('blocked', `programs cannot run: ${executor.unavailableBecause()}`);
    }
    // Later checks run exactly the program that the job was made with.
    if (mark === undefined) {
      return { kind: 'closed', mark: await executor.seal(request, workspace) };
    }
    let isForeign = true;
    const isTainted = job.isTainted === true;
    const context = { ...standing, workspace, clock, signal, seal: mark, isTainted };
    const marked = { ...context, own: () => (isForeign = false) };
    const seen = !executor.isIsolated() || executor.seesMore();
    const run = () => own.running(() => executor.run(request, context), marked, seen);
    try {
      const text = live.redact(headOf(await audited(job, gate, run), MAX_FOUND_CHARS));
      return { kind: 'open', found: { what: 'output of the program', text, isForeign } };
    } catch (error) {
      if (error instanceof ProgramError && error.exitCode === CLOSED_EXIT)
        return { kind: 'closed' };
      throw error;
    }
  }

  async function audited<T>(job: Job, gate: Gate, run: () => Promise<T>): Promise<T> {
    const about = gateText(gate);
    const fields = {
      ...{ call: randomUUID(), tool: 'exec', access: 'execute', about },
      ...{ session: jobSession(job.id), wasTainted: job.isTainted === true },
      argumentsSha256: hashOf(about),
    };
    const note = (status: string) =>
      audit.note({ kind: 'tool_call', fields: { ...fields, status } });
    await audit.enter({ kind: 'tool_call', fields: { ...fields, status: BEGUN } });
    try {
      const result = await run();
      note('ok');
      return result;
    } catch (error) {
      note('failed');
      throw error;
    }
  }

  async function url({ gate, mark, signal }: Check<'url'>): Promise<Look> {
    if (live.redact(gate.url) !== gate.url) {
      throw new ToolError('blocked', 'the address contains a secret of the configuration');
    }
    const { text } = await loadPage(gate.url, { signal }, web);
    const shown = headOf(`Address: ${gate.url}\n\n${text}`, MAX_FOUND_CHARS);
    const found = { what: 'a page changed', text: live.redact(shown), isForeign: true };
    return compared(mark, hashOf(text), found);
  }

  async function file({ gate, mark, standing }: Check<'file'>): Promise<Look> {
    checkNotes(gate.path, standing);
    const limits = { maxBytes: MAX_FILE_BYTES };
    const content = await files.read(live.defaults.workspace, gate.path, limits).catch((error) => {
      if (error instanceof GuardedFileError && error.reason === 'not_found') return undefined;
      throw error;
    });
    const now = content === undefined ? ABSENT : hashOf(content);
    const how = now === ABSENT ? `was deleted` : mark === ABSENT ? `was created` : 'changed';
    return compared(mark, now, { what: `${gate.path} ${how}`, text: '', isForeign: false });
  }

  async function mail({ gate, mark, standing, signal }: Check<'mail'>): Promise<Look> {
    if (standing.person.notes !== '') {
      throw new ToolError('permission', 'only an owner’s job may look into the mailbox');
    }
    const open = inboxes();
    if (open.length === 0) throw new ToolError('not_found', 'no mailbox is connected');
    const question = { words: gate.words, isUnreadOnly: false, count: MAX_MAILS };
    const lists = await Promise.all(
      open.map(async (inbox) =>
        (await inbox.find(question, signal)).map((each) => ({
          ...each,
          id: `${inbox.name}/${each.id}`,
        })),
      ),
    );
    const mails = lists.flat();
    const known = mark === undefined ? undefined : jsonRow(mark, MAIL_MARK);
    const since = known?.at ?? 0;
    const at = Math.max(since, ...mails.map((each) => each.at));
    const next = JSON.stringify({ at, ids: mails.map(({ id }) => id) } satisfies MailMark);
    const fresh = mails.filter(
      (each) => each.at >= since && known?.ids.includes(each.id) === false,
    );
    if (fresh.length === 0) return { kind: 'closed', mark: next };
    const zone = standing.person.timeZone ?? live.config.sessions.timeZone;
    const lines = fresh.map(
      ({ id, from, subject, at: arrived }) =>
        `- ${subject === '' ? `(no subject)` : subject}\n  from ${from}, ${minuteText(arrived, zone)}\n  id: ${id}`,
    );
    const text = headOf(live.redact(lines.join('\n')), MAX_FOUND_CHARS);
    const found = { what: 'new mails, to be read with check_inbox', text, isForeign: true };
    return { kind: 'open', mark: next, found };
  }

  async function look(
    job: Job & { readonly when: Gate },
    standing: GateStanding,
    signal: AbortSignal,
  ) {
    const { when: gate } = job;
    const { access, reach } = gateNeeds(gate, executor.isIsolated() ? 'machine' : 'outside');
    // An approval of the job covers its check; a right that was revoked since does not.
    if (permissionOf(access, standing.rights, false, reach) === 'never') {
      throw new ToolError('permission', 'its maker may not do this any more');
    }
    const common = { job, mark: job.gate?.mark, standing, signal };
    switch (gate.kind) {
      case 'program':
        return program({ ...common, gate });
      case 'url':
        return url({ ...common, gate });
      case 'file':
        return file({ ...common, gate });
      case 'mail':
        return mail({ ...common, gate });
    }
  }

  return async (job, standing, signal) => {
    try {
      return await look(job, standing, signal);
    } catch (error) {
      signal.throwIfAborted();
      const { kind, message, isExpected } = describeFailure(error);
      if (!isExpected) log.warn('check of a job failed', { job: job.id, error });
      const reason = live.redact(headOf(message, MAX_REASON_CHARS));
      return { kind: 'failed', reason, isFinal: FINAL.includes(kind) };
    }
  };
}

/** The mark of a file that does not exist. */
const ABSENT = 'absent';

type MailMark = { readonly at: number; readonly ids: readonly string[] };
const MAIL_MARK = rowShape<MailMark>({ at: number, ids: texts });

const hashOf = (content: string | Uint8Array) => hash('sha256', content);

/** The first check only takes the mark. */
function compared(before: string | undefined, mark: string, found: Finding): Look {
  if (before === undefined || before === mark) return { kind: 'closed', mark };
  return { kind: 'open', mark, found };
}
