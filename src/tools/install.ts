// Builds the agent's toolbox: all built-in tools, those of features and tool servers, with redacted
// results and audited effects.

import { hash, randomUUID } from 'node:crypto';
import {
  type CheckInboxDeps,
  createCheckInbox,
  openInboxes,
} from '../features/mail-bridge/index.ts';
import { TOOL_SERVERS, toolingStatus } from '../features/mcp/index.ts';
import type { MemoryStore } from '../features/memory/index.ts';
import { createRecall, createRemember, MEMORY } from '../features/memory/index.ts';
import {
  createBacktrack,
  createCheckpoint,
  createPlan,
  PLANS,
  type Plans,
} from '../features/plans/index.ts';
import { createReadSkill, SKILLS, type Skills } from '../features/skills/index.ts';
import type { ToolAccess } from '../kernel/access/rights.ts';
import { type Kernel, port } from '../kernel/feature.ts';
import { maxFileBytes } from '../kernel/media/files.ts';
import { BEGUN, type EffectLog } from '../kernel/observe/telemetry.ts';
import { createUndo, type OfferUndo } from '../kernel/questions/undo.ts';
import { findResult } from '../kernel/sessions/earlier.ts';
import type { GuardedFiles } from '../lib/files/guarded-files.ts';
import { headOf } from '../lib/text/cut.ts';
import type { Redactor } from '../lib/text/redact.ts';
import { createAskUser, createMessage, createTime } from './ask-user.ts';
import { createExec, createExecuteCode, EXECUTOR } from './exec/exec.ts';
import type { Executor } from './exec/executor.ts';
import {
  createReadDocument,
  createSendFile,
  type ReadDocumentDeps,
  type SendFileDeps,
} from './files/chat-files.ts';
import {
  createEditFile,
  createListDir,
  createReadFile,
  createWriteFile,
} from './files/file-tools.ts';
import { PROVENANCE, type Provenance } from './files/provenance.ts';
import {
  createExpand,
  createReadEarlier,
  createReadResult,
  createSessionSearch,
  type ExpandDeps,
  type PastSessions,
  type ReadResultDeps,
} from './read-back.ts';
import { buildSearch, createSearchTools, type SearchToolsDeps } from './search/search.ts';
import type { BoundCall, Tool, Toolbox, ToolContext, ToolOutcome } from './tool.ts';
import { createToolbox, toolboxSettings } from './toolbox.ts';
import { buildWeb, createWebFetch, type WebFetchDeps } from './web/web-fetch.ts';

type ToolsDeps = {
  /** Shared with memory, so that changes of one file are serialised. */
  readonly files: GuardedFiles;
  readonly own?: Provenance;
  readonly memory: MemoryStore;
  readonly skills: Skills;
  readonly sessions: ExpandDeps['sessions'];
  readonly past: PastSessions;
  /** IANA zone; empty = the machine's. */
  readonly timeZone: () => string;
  readonly inboxes: CheckInboxDeps['inboxes'];
  readonly executor: Executor;
  readonly web: WebFetchDeps;
  readonly search: SearchToolsDeps;
  readonly reading: Omit<ReadDocumentDeps, 'files' | 'own'>;
  readonly results: ReadResultDeps;
  readonly sending: Omit<SendFileDeps, 'files'>;
  readonly plans: Plans;
  readonly offerUndo: OfferUndo;
};

export function createTools(deps: ToolsDeps): readonly Tool[] {
  const { files, memory, sessions, past, timeZone, inboxes, reading, plans } = deps;
  const recall = createRecall(memory);
  const sessionSearch = createSessionSearch({ past, maxResultChars: reading.maxResultChars });
  const mailbox = createCheckInbox({ inboxes, timeZone });
  return [
    createReadFile(deps),
    createReadDocument({ files, own: deps.own, ...reading }),
    createReadResult(deps.results),
    createWriteFile(deps),
    createEditFile(deps),
    createListDir(deps),
    createRemember(memory, deps.offerUndo),
    recall,
    sessionSearch,
    createReadEarlier({ sessions, maxResultChars: reading.maxResultChars }),
    createExpand({ sessions, maxResultChars: reading.maxResultChars }),
    createReadSkill(deps.skills),
    createMessage(),
    createAskUser(),
    createPlan(plans),
    createCheckpoint(plans),
    createBacktrack(plans),
    createSendFile({ files, ...deps.sending }),
    createExec(deps.executor, deps.own),
    createExecuteCode(deps.executor, deps.own),
    createWebFetch(deps.web),
    mailbox,
    ...createSearchTools(deps.search, deps, { memory: recall, sessions: sessionSearch, mailbox }),
    createTime(timeZone),
  ];
}

// Writes every call with effects to the audit file: the tool and the person before it begins, and
// how it ended. Arguments are recorded as a hash, with a short description.

const EFFECTS: readonly ToolAccess[] = ['write', 'rules', 'send', 'execute', 'schedule'];
const MAX_DETAIL_CHARS = 300;

/** The toolbox of the agent: secrets are redacted from results, and every effect is audited. */
export function auditedToolbox(toolbox: Toolbox, audit: EffectLog, redact: Redactor): Toolbox {
  const shown = (outcome: ToolOutcome): ToolOutcome => ({
    ...outcome,
    text: redact(outcome.text),
    ...(outcome.whole === undefined ? {} : { whole: redact(outcome.whole) }),
  });
  return {
    ...toolbox,
    bind(name, argumentsJson) {
      const bound = toolbox.bind(name, argumentsJson);
      if (bound.kind === 'refused') return { ...bound, outcome: shown(bound.outcome) };
      const run = async (context: ToolContext) => shown(await bound.run(context));
      return audited({ ...bound, run }, audit, redact);
    },
  };
}

type Ready = Extract<BoundCall, { readonly kind: 'ready' }>;

function audited(bound: Ready, audit: EffectLog, redact: Redactor): Ready {
  return {
    ...bound,
    async run(context) {
      const access = bound.accessIn({ isTainted: context.isTainted });
      if (!EFFECTS.includes(access)) return bound.run(context);
      const fields = {
        ...{ call: randomUUID(), tool: bound.name, access },
        ...{ session: context.session, turn: context.turnId, wasTainted: context.isTainted },
        about: headOf(redact(bound.detail), MAX_DETAIL_CHARS),
        argumentsSha256: hash('sha256', bound.arguments),
      };
      await audit.enter({ kind: 'tool_call', fields: { ...fields, status: BEGUN } });
      const outcome = await bound.run(context);
      audit.note({ kind: 'tool_call', fields: { ...fields, status: outcome.status } });
      return outcome;
    },
  };
}

/** The tools of the agent, with audited effects and redacted results. */
export const TOOLS = port<{ readonly toolbox: Toolbox }>('tools');

export function install(kernel: Kernel): void {
  const { live, clock, log, media, reader, sessions, contributed } = kernel;
  const { files, notes, past } = kernel.use(MEMORY);
  const servers = kernel.use(TOOL_SERVERS);
  const maxResultChars = () => live.defaults.maxToolResultChars;
  const tools = createTools({
    plans: kernel.use(PLANS),
    offerUndo: createUndo(kernel),
    ...{ files, memory: notes, past, sessions },
    skills: kernel.use(SKILLS),
    executor: kernel.use(EXECUTOR),
    inboxes: openInboxes(live, kernel.channels.get),
    timeZone: () => live.config.sessions.timeZone,
    own: kernel.use(PROVENANCE),
    web: buildWeb(live, clock, kernel.readerMemory, kernel.resources),
    search: buildSearch(live, kernel.env),
    sending: { media, limit: maxFileBytes(kernel) },
    reading: { media, reader, maxResultChars },
    results: { find: (session, id) => findResult(sessions, session, id), maxResultChars },
  });
  const toolbox = createToolbox({
    tools: () => [...tools, ...contributed.tools(), ...servers.tools()],
    settings: () => toolboxSettings(live.config),
    clock,
    log,
  });
  kernel.add.status(toolingStatus(kernel, servers, toolbox.missing));
  kernel.provide(TOOLS, {
    toolbox: auditedToolbox(toolbox, kernel.measuring.audit, live.redact),
  });
}
